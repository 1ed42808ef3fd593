/**
 * First step of a recipe: walk the layers once and gather
 * them into cache groups, in order of first appearance.
 */
import { GranaryError } from "../assert";
import type { CacheFieldSpec, CacheGroupDeclaration, CacheGroupSpec } from "./cache-spec";
import { checkGroupSpec } from "./cache-spec";

/** A layer's cache label, as configurations spell it; "sliding_attention_3" names a subgroup of its own. */
export type LayerLabel = string;

export interface LayerKind {
  readonly family: "history" | "state";
  readonly retention: "fullHistory" | "slidingWindow";
}

/** What a label means; undefined for a word outside the vocabulary. */
export function layerKindOf(label: LayerLabel): LayerKind | undefined {
  if (label === "full_attention" || label === "deepseek_sparse_attention") {
    return { family: "history", retention: "fullHistory" };
  }
  if (/^sliding_attention(_\d+)?$/.test(label)) return { family: "history", retention: "slidingWindow" };
  if (/^linear_attention(_\d+)?$/.test(label)) return { family: "state", retention: "fullHistory" };
  return undefined;
}

function fail(reason: string): never {
  throw new GranaryError("invalid_layer_types", reason);
}

/** Window of each layer: a scalar is given to the sliding layers, a list must fit the labels one by one. */
export function windowsOfLayers(
  labels: readonly LayerLabel[],
  window: number | undefined | readonly (number | undefined)[],
): readonly (number | undefined)[] {
  const isList = typeof window === "object";
  if (isList && window.length !== labels.length) {
    fail(`${window.length} windows were given for ${labels.length} layers`);
  }
  return labels.map((label, layer) => {
    const kind = layerKindOf(label) ?? fail(`layer ${layer} has the unknown type '${label}'`);
    const own = isList ? window[layer] : window;
    if (kind.retention === "slidingWindow") {
      if (typeof own !== "number" || !Number.isInteger(own) || own <= 0) {
        fail(`layer ${layer} slides but its window is ${String(own)}`);
      }
      return own;
    }
    if (isList && own !== undefined) fail(`layer ${layer} does not slide but has the window ${own}`);
    return undefined;
  });
}

/**
 * Group id of each layer: its label, with the window appended where sliding layers use more than one window.
 */
export function layerGroupIds(
  labels: readonly LayerLabel[],
  windows: readonly (number | undefined)[],
): readonly string[] {
  const distinct = new Set(windows.filter((window) => window !== undefined));
  return labels.map((label, layer) => {
    const window = windows[layer];
    return window !== undefined && distinct.size > 1 ? `${label}_${window}` : label;
  });
}

export interface GroupLayersInput {
  readonly labels: readonly LayerLabel[];
  readonly window: number | undefined | readonly (number | undefined)[];
  readonly prefixGranularity: number;
  /** Fields of one layer; `occurrence` counts the layers of its group before it. */
  fieldsForLayer(layer: number, groupId: string, occurrence: number): readonly CacheFieldSpec[];
}

function specOf(
  groupId: string,
  label: string,
  window: number | undefined,
  granularity: number,
): CacheGroupSpec {
  const kind = layerKindOf(label) ?? fail(`unknown layer type '${label}'`);
  return {
    groupId,
    family: kind.family,
    retention: kind.retention,
    ...(window === undefined ? {} : { slidingWindowTokens: window }),
    shape:
      kind.family === "state"
        ? { kind: "checkpoint", checkpointGranularity: granularity }
        : { kind: "rows", rowsPerPage: granularity, entryStrideTokens: 1 },
  };
}

/** Groups the layers. A group whose layers declare no field is an error. */
export function groupLayers(input: GroupLayersInput): readonly CacheGroupDeclaration[] {
  const windows = windowsOfLayers(input.labels, input.window);
  const ids = layerGroupIds(input.labels, windows);
  const groups = new Map<string, { spec: CacheGroupSpec; fields: CacheFieldSpec[]; occurrence: number }>();
  ids.forEach((groupId, layer) => {
    const spec = specOf(groupId, input.labels[layer] as string, windows[layer], input.prefixGranularity);
    const group = groups.get(groupId) ?? { spec, fields: [], occurrence: 0 };
    groups.set(groupId, group);
    const fields = input.fieldsForLayer(layer, groupId, group.occurrence);
    group.fields.push(...fields);
    if (fields.length > 0) group.occurrence++;
  });
  return [...groups.values()].map(({ spec, fields }) => {
    checkGroupSpec(spec);
    if (fields.length === 0) fail(`cache group '${spec.groupId}' has no fields`);
    return { spec, fields };
  });
}
