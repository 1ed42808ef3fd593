/**
 * Second step of a recipe: lay the groups' fields out in planes
 * so that one LCM block serves any group. No capacity yet.
 */
import { GranaryError } from "../assert";
import type { CacheDtype, CacheFieldSpec, CacheGroupDeclaration } from "./cache-spec";
import { dtypeWidthBytes, payloadBytes } from "./cache-spec";
import {
  choosePacking,
  growFlexibleGroups,
  isExact,
  type Packing,
  rawBytesOf,
  type Tenant,
  tenantsOf,
} from "./packing";
import { alignUp, lcm } from "./rational";

export interface FieldLayout {
  readonly fieldId: string;
  readonly groupId: string;
  readonly planeId: string;
  readonly shape: readonly number[];
  readonly dtype: CacheDtype;
  readonly payloadBytes: number;
  /** Inside a block of its group on this plane. */
  readonly fieldOffsetBytes: number;
  /** From one block of the group to the next on this plane. */
  readonly pageStrideBytes: number;
}

export interface CacheLayout {
  readonly prefixGranularity: number;
  readonly lcmBlockBytes: number;
  /** Sorted by group id. */
  readonly groupPacking: readonly { readonly groupId: string; readonly cacheBlocksPerLcmBlock: number }[];
  /** Sorted by plane id. */
  readonly planes: readonly { readonly planeId: string; readonly bytesPerLcmBlock: number }[];
  /** Sorted by plane, group and field id. */
  readonly fields: readonly FieldLayout[];
}

export interface PackOptions {
  readonly prefixGranularity: number;
  /** Pinned packings by group id. */
  readonly pins?: Packing;
  /** Of each plane's share of an LCM block. Default 256. */
  readonly alignmentBytes?: number;
  /** Largest waste of a group's block, as a fraction of its payload. Default 0.25. */
  readonly maxPaddingFraction?: number;
}

/** Offsets of the fields inside a block, and where a (plane, group) pair ends. */
function placeFields(tenants: readonly Tenant[]): { offsets: number[]; ends: Map<string, number> } {
  const ends = new Map<string, number>();
  const offsets = tenants.map(({ groupId, field }) => {
    const key = `${field.planeId}\0${groupId}`;
    const offset = alignUp(ends.get(key) ?? 0, dtypeWidthBytes(field.dtype));
    ends.set(key, offset + payloadBytes(field));
    return offset;
  });
  return { offsets, ends };
}

function planeBytesOf(
  residents: readonly Tenant[],
  packing: Packing,
  endOf: (groupId: string) => number,
  alignment: number,
): number {
  const count = (groupId: string) => packing.get(groupId) as number;
  const needed = Math.max(...residents.map(({ groupId }) => count(groupId) * endOf(groupId)));
  const units = residents.flatMap(({ groupId, field }) => [
    count(groupId) * dtypeWidthBytes(field.dtype),
    count(groupId) * (field.pageStrideAlignmentBytes ?? 1),
  ]);
  return alignUp(needed, lcm(alignment, ...units));
}

function checkExactStride(field: CacheFieldSpec, strideBytes: number, residents: readonly Tenant[]): void {
  if (!isExact(field) || strideBytes === payloadBytes(field)) return;
  const widest = [...residents].sort((a, b) => payloadBytes(b.field) - payloadBytes(a.field))[0] as Tenant;
  throw new GranaryError(
    "invalid_packing",
    `${field.fieldId} needs page stride ${payloadBytes(field)} but its plane gives ${strideBytes}: ` +
      `the widest tenant is ${widest.field.fieldId} of '${widest.groupId}'`,
  );
}

function checkPadding(
  groups: readonly CacheGroupDeclaration[],
  packing: Packing,
  bytes: number,
  limit: number,
): void {
  for (const group of groups) {
    const count = packing.get(group.spec.groupId) as number;
    const raw = rawBytesOf(group);
    const padding = (bytes / count - raw) / raw;
    if (bytes % count !== 0 || padding > limit) {
      throw new GranaryError(
        "invalid_packing",
        `cache group '${group.spec.groupId}' would waste ${(padding * 100).toFixed(1)} % of its blocks`,
      );
    }
  }
}

/** Judges the options and fills in the defaults. */
function settle(options: PackOptions): Required<PackOptions> {
  const { prefixGranularity, pins = new Map(), alignmentBytes = 256, maxPaddingFraction = 0.25 } = options;
  const isSound =
    Number.isInteger(prefixGranularity) &&
    prefixGranularity > 0 &&
    Number.isInteger(alignmentBytes) &&
    alignmentBytes > 0 &&
    maxPaddingFraction >= 0;
  if (!isSound) {
    throw new GranaryError(
      "invalid_packing",
      `cannot pack at granularity ${prefixGranularity}, alignment ${alignmentBytes} ` +
        `and padding ${maxPaddingFraction}`,
    );
  }
  return { prefixGranularity, pins, alignmentBytes, maxPaddingFraction };
}

/** Throws when no layout keeps the exact strides and the padding limit. */
export function pack(groups: readonly CacheGroupDeclaration[], options: PackOptions): CacheLayout {
  const { prefixGranularity, pins, alignmentBytes: alignment, maxPaddingFraction } = settle(options);
  const tenants = tenantsOf(groups);
  const { offsets, ends } = placeFields(tenants);
  const endOf = (planeId: string, groupId: string) => ends.get(`${planeId}\0${groupId}`) as number;
  const packing = choosePacking(groups, tenants, pins);
  if (pins.size === 0) growFlexibleGroups(groups, tenants, endOf, packing, alignment);

  const planeIds = [...new Set(tenants.map(({ field }) => field.planeId))];
  const planes = planeIds.map((planeId) => {
    const residents = tenants.filter(({ field }) => field.planeId === planeId);
    const bytesPerLcmBlock = planeBytesOf(
      residents,
      packing,
      (groupId) => endOf(planeId, groupId),
      alignment,
    );
    for (const { groupId, field } of residents) {
      checkExactStride(field, bytesPerLcmBlock / (packing.get(groupId) as number), residents);
    }
    return { planeId, bytesPerLcmBlock };
  });
  const sum = planes.reduce((total, { bytesPerLcmBlock }) => total + bytesPerLcmBlock, 0);
  const lcmBlockBytes = alignUp(sum, lcm(alignment, ...packing.values()));
  if (!Number.isSafeInteger(lcmBlockBytes))
    throw new GranaryError("invalid_packing", "an LCM block is too large");
  checkPadding(groups, packing, lcmBlockBytes, maxPaddingFraction);

  const bytesOf = new Map(planes.map(({ planeId, bytesPerLcmBlock }) => [planeId, bytesPerLcmBlock]));
  return {
    prefixGranularity,
    lcmBlockBytes,
    groupPacking: [...packing]
      .map(([groupId, cacheBlocksPerLcmBlock]) => ({ groupId, cacheBlocksPerLcmBlock }))
      .sort((a, b) => (a.groupId < b.groupId ? -1 : 1)),
    planes,
    fields: tenants.map(({ groupId, field }, index) => ({
      fieldId: field.fieldId,
      groupId,
      planeId: field.planeId,
      shape: field.shape,
      dtype: field.dtype,
      payloadBytes: payloadBytes(field),
      fieldOffsetBytes: offsets[index] as number,
      pageStrideBytes: (bytesOf.get(field.planeId) as number) / (packing.get(groupId) as number),
    })),
  };
}
