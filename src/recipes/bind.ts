/**
 * Third step of a recipe: give a layout its number of LCM blocks and every field its address in one arena.
 */
import { GranaryError } from "../assert";
import { maxInt32 } from "../limits";
import type { CacheLayout, FieldLayout } from "./pack";

export interface PlannedField extends FieldLayout {
  /** Arena offset of the field in block 0; block i lies `pageStrideBytes` times i behind it. */
  readonly arenaOffsetBytes: number;
}

/** Everything about the arena as integers and text; can travel as JSON. */
export interface CacheMemoryPlan {
  readonly prefixGranularity: number;
  readonly lcmBlockBytes: number;
  /** Usable ones; the null parent comes on top. */
  readonly numLcmBlocks: number;
  readonly arenaBytes: number;
  readonly groups: readonly {
    readonly groupId: string;
    readonly cacheBlocksPerLcmBlock: number;
    /** Block ids run from 0 (null) to pageCount - 1. */
    readonly pageCount: number;
  }[];
  readonly planes: readonly {
    readonly planeId: string;
    readonly bytesPerLcmBlock: number;
    readonly arenaOffsetBytes: number;
  }[];
  readonly fields: readonly PlannedField[];
}

/** Planes lie one after another, each for the null parent and `numLcmBlocks` usable ones. */
export function bind(layout: CacheLayout, numLcmBlocks: number): CacheMemoryPlan {
  if (typeof numLcmBlocks !== "number" || !Number.isInteger(numLcmBlocks) || numLcmBlocks < 1) {
    throw new GranaryError(
      "invalid_capacity",
      `the number of LCM blocks must be a positive integer, not ${numLcmBlocks}`,
    );
  }
  for (const { groupId, cacheBlocksPerLcmBlock } of layout.groupPacking) {
    if (numLcmBlocks * cacheBlocksPerLcmBlock > maxInt32) {
      throw new GranaryError(
        "invalid_capacity",
        `cache group '${groupId}' would have more blocks than an int32 can name`,
      );
    }
  }
  const arenaBytes = (numLcmBlocks + 1) * layout.lcmBlockBytes;
  if (!Number.isSafeInteger(arenaBytes)) {
    throw new GranaryError("invalid_capacity", `${numLcmBlocks} LCM blocks have no address space`);
  }
  let offset = 0;
  const planes = layout.planes.map(({ planeId, bytesPerLcmBlock }) => {
    const plane = { planeId, bytesPerLcmBlock, arenaOffsetBytes: offset };
    offset += (numLcmBlocks + 1) * bytesPerLcmBlock;
    return plane;
  });
  const planeById = new Map(planes.map((plane) => [plane.planeId, plane]));
  return {
    prefixGranularity: layout.prefixGranularity,
    lcmBlockBytes: layout.lcmBlockBytes,
    numLcmBlocks,
    arenaBytes,
    groups: layout.groupPacking.map(({ groupId, cacheBlocksPerLcmBlock }) => ({
      groupId,
      cacheBlocksPerLcmBlock,
      pageCount: 1 + numLcmBlocks * cacheBlocksPerLcmBlock,
    })),
    planes,
    fields: layout.fields.map((field) => {
      const plane = planeById.get(field.planeId) as (typeof planes)[number];
      // Block 0 is the last child of the null parent, so that block 1 is the first child of parent 1.
      const arenaOffsetBytes =
        plane.arenaOffsetBytes + plane.bytesPerLcmBlock - field.pageStrideBytes + field.fieldOffsetBytes;
      return { ...field, arenaOffsetBytes };
    }),
  };
}
