/** Short ways to declare cache groups in tests. */
import type { CacheFieldSpec, CacheGroupDeclaration, CacheGroupSpec } from "../../src/recipes/cache-spec";

export function historyGroup(groupId: string, rows: number, fields: readonly CacheFieldSpec[]) {
  return groupWith({ groupId, shape: { kind: "rows", rowsPerPage: rows, entryStrideTokens: 1 } }, fields);
}

export function stateGroup(groupId: string, granularity: number, fields: readonly CacheFieldSpec[]) {
  const shape = { kind: "checkpoint", checkpointGranularity: granularity } as const;
  return groupWith({ groupId, family: "state", shape }, fields);
}

export function slidingGroup(
  groupId: string,
  rows: number,
  window: number,
  fields: readonly CacheFieldSpec[],
) {
  const shape = { kind: "rows", rowsPerPage: rows, entryStrideTokens: 1 } as const;
  return groupWith({ groupId, shape, retention: "slidingWindow", slidingWindowTokens: window }, fields);
}

/** A full history of one token a block unless told otherwise. */
export function specWith(overrides: Partial<CacheGroupSpec>): CacheGroupSpec {
  return {
    groupId: "group",
    family: "history",
    retention: "fullHistory",
    shape: { kind: "rows", rowsPerPage: 1, entryStrideTokens: 1 },
    ...overrides,
  };
}

function groupWith(
  overrides: Partial<CacheGroupSpec>,
  fields: readonly CacheFieldSpec[],
): CacheGroupDeclaration {
  return { spec: specWith(overrides), fields };
}

/** `bytes` of uint8 on a plane. */
export function byteField(
  fieldId: string,
  planeId: string,
  bytes: number,
  more: Partial<CacheFieldSpec> = {},
): CacheFieldSpec {
  return { fieldId, planeId, shape: [bytes], dtype: "uint8", ...more };
}
