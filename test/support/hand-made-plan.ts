/**
 * Execution plans written by hand: rows with their table
 * changes, everything else as a scheduler would leave it.
 */
import type {
  BlockIdList,
  ExecutionPlan,
  ForwardBatch,
  ForwardRow,
  GroupTableChanges,
} from "../../src/scheduler/plan";

/** What happens to one group's table of one row. */
export interface TableChange {
  readonly replaced?: readonly (readonly [column: number, id: number])[];
  readonly nulled?: readonly [begin: number, end: number];
  readonly appended?: readonly number[];
  /** Blocks in the table afterwards. */
  readonly length: number;
}

export interface HandMadeRow {
  readonly row: ForwardRow;
  /** One a cache group. */
  readonly changes: readonly TableChange[];
}

/**
 * A row of `size` prompt tokens from `begin`; the first
 * chunk and the last of its prompt unless told otherwise.
 */
export function prefillRow(overrides: Partial<ForwardRow> & Pick<ForwardRow, "slot" | "tokens">): ForwardRow {
  const { tokens, begin = 0, replay = 0, size = tokens.length - begin } = overrides;
  return {
    request: overrides.slot,
    requestId: `request in slot ${overrides.slot}`,
    isPrefill: true,
    isFirstChunk: begin === 0,
    isFirstDecode: false,
    begin,
    size,
    replay,
    inputLength: size + replay,
    prefillLength: tokens.length,
    completesPrompt: begin + size === tokens.length,
    internalStateBoundary: 0,
    decodeInputId: -1,
    specCandidates: [],
    resultsInFlight: 0,
    deviceHitTokens: 0,
    hostHitTokens: 0,
    storageHitTokens: 0,
    ...overrides,
  };
}

/** A decode step whose input stands at `begin`. */
export function decodeRow(
  overrides: Partial<ForwardRow> & Pick<ForwardRow, "slot" | "begin" | "tokens">,
): ForwardRow {
  return {
    ...prefillRow({ ...overrides, size: 1 }),
    isPrefill: false,
    isFirstChunk: false,
    completesPrompt: false,
    prefillLength: overrides.begin,
    ...overrides,
  };
}

function offsetsOf(counts: readonly number[]): Int32Array {
  const offsets = new Int32Array(counts.length + 1);
  counts.forEach((count, i) => {
    offsets[i + 1] = (offsets[i] as number) + count;
  });
  return offsets;
}

/** One group's changes of all rows, in a plan's columns. */
export function tableChanges(rows: readonly TableChange[]): GroupTableChanges {
  const replaced = rows.map((change) => change.replaced ?? []);
  const appended = rows.map((change) => change.appended ?? []);
  return {
    replacedOffsets: offsetsOf(replaced.map((pairs) => pairs.length)),
    replacedColumns: Int32Array.from(replaced.flatMap((pairs) => pairs.map(([column]) => column))),
    replacedIds: Int32Array.from(replaced.flatMap((pairs) => pairs.map(([, id]) => id))),
    nulledBegins: Int32Array.from(rows, (change) => change.nulled?.[0] ?? 0),
    nulledEnds: Int32Array.from(rows, (change) => change.nulled?.[1] ?? 0),
    appendedOffsets: offsetsOf(appended.map((ids) => ids.length)),
    appendedIds: Int32Array.from(appended.flat()),
    tableLengths: Int32Array.from(rows, ({ length }) => length),
  };
}

const noRows: ForwardBatch = { rows: [], numPrefills: 0, tableChanges: [] };

export interface PlanOptions {
  readonly planId?: number;
  /** Block ids to clear, one list a group. */
  readonly blocksToZero?: readonly (readonly number[])[];
}

/** Prefill rows come first, as in every plan. */
export function planOf(rows: readonly HandMadeRow[], options: PlanOptions = {}): ExecutionPlan {
  const ordered = [...rows.filter(({ row }) => row.isPrefill), ...rows.filter(({ row }) => !row.isPrefill)];
  const numGroups = ordered[0]?.changes.length ?? 0;
  const blocksToZero = (options.blocksToZero ?? []).map(
    (ids): BlockIdList => ({ ids: Int32Array.from(ids), length: ids.length }),
  );
  return {
    planId: options.planId ?? 1,
    forward: {
      rows: ordered.map(({ row }) => row),
      numPrefills: ordered.filter(({ row }) => row.isPrefill).length,
      tableChanges: Array.from({ length: numGroups }, (_, group) =>
        tableChanges(ordered.map(({ changes }) => changes[group] ?? { length: 0 })),
      ),
    },
    remoteDecode: noRows,
    remotePrefill: noRows,
    writeBacks: [],
    loadBacks: [],
    blocksToZero,
    isEmpty: ordered.length === 0 && blocksToZero.every(({ length }) => length === 0),
    blockTableRow: () => [],
  };
}
