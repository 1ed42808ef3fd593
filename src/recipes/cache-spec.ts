/**
 * What a model family declares about its cache: groups and
 * their fields. Integers and strings, no device, no hardware.
 */
import { GranaryError } from "../assert";

/** Width of every dtype a cache field may have, in bytes. */
const dtypeWidths = {
  uint8: 1,
  int8: 1,
  float8_e4m3fn: 1,
  float8_e5m2: 1,
  float8_e8m0fnu: 1,
  bfloat16: 2,
  float16: 2,
  int32: 4,
  float32: 4,
  int64: 8,
  float64: 8,
} as const;

export type CacheDtype = keyof typeof dtypeWidths;

export function dtypeWidthBytes(dtype: CacheDtype): number {
  return dtypeWidths[dtype];
}

/** The shape a group declares: rows of a history, or one snapshot every so many tokens. */
export type GroupShape =
  | { readonly kind: "rows"; readonly rowsPerPage: number; readonly entryStrideTokens: number }
  | { readonly kind: "checkpoint"; readonly checkpointGranularity: number };

export interface CacheGroupSpec {
  readonly groupId: string;
  readonly family: "history" | "state";
  readonly retention: "fullHistory" | "slidingWindow";
  /** Only with slidingWindow; counts the querying token itself. */
  readonly slidingWindowTokens?: number;
  readonly shape: GroupShape;
  readonly shardCount?: number;
  /**
   * Only sliding histories: rebuilt by feeding the window again instead of being kept in the prefix cache.
   */
  readonly replayable?: boolean;
}

export interface CacheFieldSpec {
  /** "layer.<global layer>.<suffix>". */
  readonly fieldId: string;
  readonly planeId: string;
  /** Elements per block, outermost first. */
  readonly shape: readonly number[];
  readonly dtype: CacheDtype;
  /** The kernel steps from block to block by the payload's own size. Default true. */
  readonly exactPageStride?: boolean;
  readonly pageStrideAlignmentBytes?: number;
}

export interface CacheGroupDeclaration {
  readonly spec: CacheGroupSpec;
  readonly fields: readonly CacheFieldSpec[];
}

export function payloadBytes(field: CacheFieldSpec): number {
  return field.shape.reduce((product, extent) => product * extent, dtypeWidthBytes(field.dtype));
}

/** Tokens that one block of the group covers. */
export function blockGranularityOf(spec: CacheGroupSpec): number {
  return spec.shape.kind === "rows"
    ? spec.shape.rowsPerPage * spec.shape.entryStrideTokens
    : spec.shape.checkpointGranularity;
}

function isPositiveInteger(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}

function geometryOf(shape: GroupShape): readonly number[] {
  return shape.kind === "rows" ? [shape.rowsPerPage, shape.entryStrideTokens] : [shape.checkpointGranularity];
}

/** Throws unless the field has a known dtype and positive extents. */
export function checkFieldSpec(field: CacheFieldSpec): void {
  const isSound =
    field.shape.every(isPositiveInteger) &&
    Object.hasOwn(dtypeWidths, field.dtype) &&
    isPositiveInteger(field.pageStrideAlignmentBytes ?? 1);
  if (isSound) return;
  const { fieldId, dtype, shape, pageStrideAlignmentBytes } = field;
  throw new GranaryError(
    "invalid_cache_fields",
    `cache field '${fieldId}': dtype ${dtype}, shape [${shape}], alignment ${pageStrideAlignmentBytes}`,
  );
}

/** Throws unless the declaration is one of the three legal kinds with positive geometry. */
export function checkGroupSpec(spec: CacheGroupSpec): void {
  const fail = (reason: string): never => {
    throw new GranaryError("invalid_cache_group", `cache group '${spec.groupId}': ${reason}`);
  };
  if (spec.groupId === "") fail("its id is empty");
  if (!geometryOf(spec.shape).every(isPositiveInteger)) fail("its block geometry must be positive integers");
  if (!isPositiveInteger(spec.shardCount ?? 1)) fail("its shard count must be a positive integer");
  if (spec.family === "state" && spec.shape.kind !== "checkpoint")
    fail("a state group holds checkpoints, not rows");
  if (spec.family === "history" && spec.shape.kind !== "rows")
    fail("a history group holds rows, not checkpoints");
  if (spec.family === "state" && spec.retention !== "fullHistory") fail("a state group never slides");
  const slides = spec.retention === "slidingWindow";
  if (slides !== (spec.slidingWindowTokens !== undefined))
    fail("a window belongs to a sliding group and to no other");
  if (slides && !isPositiveInteger(spec.slidingWindowTokens)) fail("its window must be a positive integer");
  if (spec.replayable && !slides) fail("only a sliding history can be replayed");
}
