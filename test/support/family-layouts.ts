/**
 * Cache declarations of published architectures, by their shapes;
 * for checking the packing against figures worked out by hand.
 */
import type { CacheDtype, CacheFieldSpec, CacheGroupDeclaration } from "../../src/recipes/cache-spec";
import { historyGroup, slidingGroup, stateGroup } from "./cache-fields";

/** A field of one dimension of rows. */
function field(
  fieldId: string,
  planeId: string,
  shape: readonly number[],
  dtype: CacheDtype,
  more: Partial<CacheFieldSpec> = {},
): CacheFieldSpec {
  return { fieldId, planeId, shape, dtype, ...more };
}

const layersOf = (count: number) => Array.from({ length: count }, (_, i) => i);

/** Latent attention: one row of 512 + 64 a token; with `indexKeys`, 64 rows of 132 bytes beside it. */
export function latentGroups(layers: number, options: { readonly indexKeys?: boolean } = {}) {
  const fields = layersOf(layers).flatMap((i) => [
    field(`layer.${i}.latent_kv`, `slot.${i}`, [64, 1, 576], "bfloat16"),
    ...(options.indexKeys ? [field(`layer.${i}.index_k`, `layer.${i}.index_k`, [64, 132], "uint8")] : []),
  ]);
  return [historyGroup("full_attention", 64, fields)];
}

export interface DeltaNetShape {
  /** Repeats of [linear, linear, linear, full]. */
  readonly repeats: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly keyHeads: number;
  readonly keyDim: number;
  readonly valueHeads: number;
  readonly valueDim: number;
  readonly stateDtype?: CacheDtype;
  /** Full-attention layers of a draft model behind the target's. */
  readonly draftLayers?: number;
}

/**
 * Gated delta nets with full attention every fourth layer; state
 * and keys share a plane, convolution and values the other.
 */
export function deltaNetGroups(shape: DeltaNetShape): readonly CacheGroupDeclaration[] {
  const { repeats, keyHeads, keyDim, valueHeads, valueDim, stateDtype = "float32", draftLayers = 0 } = shape;
  const channels = 2 * keyHeads * keyDim + valueHeads * valueDim;
  const rows = [128, shape.numKvHeads, shape.headDim];
  const full = layersOf(repeats + draftLayers).flatMap((i) => {
    const layer = i < repeats ? 4 * i + 3 : 4 * repeats + i - repeats;
    return [
      field(`layer.${layer}.k`, `unit.${i}.a`, rows, "bfloat16"),
      field(`layer.${layer}.v`, `unit.${i}.b`, rows, "bfloat16"),
    ];
  });
  const states = [0, 1, 2].map((place) =>
    stateGroup(
      `linear_attention_${place}`,
      128,
      layersOf(repeats).flatMap((i) => [
        field(`layer.${4 * i + place}.ssm`, `unit.${i}.a`, [valueHeads, valueDim, keyDim], stateDtype),
        field(`layer.${4 * i + place}.conv`, `unit.${i}.b`, [channels, 3], "bfloat16", {
          exactPageStride: false,
        }),
      ]),
    ),
  );
  return [...states, historyGroup("full_attention", 128, full)];
}

/** 24 latent layers and 69 delta layers of 96 heads x 128, `ranks` of them sharing the heads. */
export function deltaLatentGroups(ranks: number, latentDtype: CacheDtype) {
  const heads = 96 / ranks;
  const latent = layersOf(24).map((i) =>
    field(`layer.${3 * 24 + i}.latent_kv`, `slot.${i}`, [128, 1, 576], latentDtype),
  );
  const states = [0, 1, 2].map((place) =>
    stateGroup(
      `linear_attention_${place}`,
      128,
      layersOf(23).flatMap((i) => {
        const layer = 3 * i + place;
        const loose = { exactPageStride: false };
        return [
          field(`layer.${layer}.conv_state`, `slot.${i}`, [3 * heads * 128, 3], "bfloat16", loose),
          field(`layer.${layer}.recurrent_state`, `slot.${i}`, [heads, 128, 128], "float32", loose),
        ];
      }),
    ),
  );
  return [...states, historyGroup("full_attention", 128, latent)];
}

/** Rows of 448 + 2 * 64 bytes and 8 of scales, blocks stepping by multiples of the 576. */
function compressedRows(fieldId: string, planeId: string, rows: number): CacheFieldSpec {
  return field(fieldId, planeId, [rows, 584], "uint8", {
    exactPageStride: false,
    pageStrideAlignmentBytes: 576,
  });
}

/**
 * Sliding rows in every layer, compressed rows and their
 * running states by ratio: layers [1, 1, 4, 128, 4, 128].
 */
export function compressedGroups(options: { readonly indexerHasOwnGroup: boolean }) {
  const loose = { exactPageStride: false };
  const [fine, coarse] = [
    [2, 4],
    [3, 5],
  ];
  const state = (groupId: string, layers: readonly number[], suffix: string, shape: readonly number[]) =>
    slidingGroup(
      groupId,
      shape[0] as number,
      2 * (shape[0] as number),
      layers.map((layer, i) => field(`layer.${layer}.${suffix}`, `unit.${i}`, shape, "float32", loose)),
    );
  const indexer = (firstPlane: number) =>
    fine.map((layer, i) =>
      field(`layer.${layer}.indexer_kv`, `unit.${firstPlane + i}`, [64, 132], "uint8", loose),
    );
  const compressed = fine.map((layer, i) => compressedRows(`layer.${layer}.compressed_kv`, `unit.${i}`, 64));
  return [
    slidingGroup(
      "swa",
      64,
      128,
      layersOf(6).map((i) => compressedRows(`layer.${i}.swa`, `unit.${i}`, 64)),
    ),
    historyGroup("c4.compressed", 64, [...compressed, ...(options.indexerHasOwnGroup ? [] : indexer(2))]),
    ...(options.indexerHasOwnGroup ? [historyGroup("c4.indexer", 64, indexer(0))] : []),
    state("c4.state", fine, "compressor_state", [4, 2048]),
    state("c4.indexer_state", fine, "indexer_state", [4, 512]),
    historyGroup(
      "c128.compressed",
      2,
      coarse.map((layer, i) => compressedRows(`layer.${layer}.compressed_kv`, `unit.${i}`, 2)),
    ),
    state("c128.state", coarse, "compressor_state", [8, 1024]),
  ];
}

/** The powers of two below the byte ratios. */
export function powerOfTwoPins(groups: readonly CacheGroupDeclaration[]): ReadonlyMap<string, number> {
  const bytesOf = ({ fields }: CacheGroupDeclaration) =>
    fields.reduce((sum, { shape, dtype }) => {
      const width = dtype === "float32" ? 4 : 1;
      return sum + shape.reduce((product, extent) => product * extent, width);
    }, 0);
  const widest = Math.max(...groups.map(bytesOf));
  return new Map(
    groups.map((group) => [group.spec.groupId, 2 ** Math.floor(Math.log2(widest / bytesOf(group)))]),
  );
}
