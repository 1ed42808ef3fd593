/**
 * The family of ordinary attention: key and value rows for
 * every layer, full or sliding, one block span for all.
 */
import type { CacheDtype, CacheGroupDeclaration } from "./cache-spec";
import { groupLayers, type LayerLabel } from "./group";
import { type CacheLayout, pack } from "./pack";

export interface PlainCacheInput {
  /** One label a layer: full_attention or sliding_attention. */
  readonly layerLabels: readonly LayerLabel[];
  /** Of the sliding layers, the querying token included. */
  readonly window?: number | readonly (number | undefined)[] | undefined;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly vHeadDim: number;
  readonly kvDtype: CacheDtype;
  readonly prefixGranularity: number;
}

/** The i-th layer of every group shares planes unit.i.k and unit.i.v. */
export function plainCacheGroups(input: PlainCacheInput): readonly CacheGroupDeclaration[] {
  const rows = input.prefixGranularity;
  return groupLayers({
    labels: input.layerLabels,
    window: input.window,
    prefixGranularity: rows,
    fieldsForLayer: (layer, _groupId, occurrence) => [
      {
        fieldId: `layer.${layer}.k`,
        planeId: `unit.${occurrence}.k`,
        shape: [rows, input.numKvHeads, input.headDim],
        dtype: input.kvDtype,
      },
      {
        fieldId: `layer.${layer}.v`,
        planeId: `unit.${occurrence}.v`,
        shape: [rows, input.numKvHeads, input.vHeadDim],
        dtype: input.kvDtype,
      },
    ],
  });
}

/**
 * A group with fewer layers than another leaves planes of its
 * blocks unused; that is the price of the mix, not a fault.
 */
export function plainCacheLayout(
  groups: readonly CacheGroupDeclaration[],
  prefixGranularity: number,
): CacheLayout {
  return pack(groups, {
    prefixGranularity,
    pins: new Map(groups.map(({ spec }) => [spec.groupId, 1])),
    alignmentBytes: 1,
    maxPaddingFraction: Number.POSITIVE_INFINITY,
  });
}
