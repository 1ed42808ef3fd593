/** Checkpoint names and shapes of a plain decoder. */
import type { RequiredTensor } from "../weights/manifest";
import type { StackedTensor } from "../weights/weight-loader";
import type { DecoderConfig } from "./decoder-config";

export const embeddingName = "model.embed_tokens.weight";
export const finalNormName = "model.norm.weight";
export const outputName = "lm_head.weight";

export interface LayerShapes {
  readonly qRows: number;
  readonly kvRows: number;
}

export function layerShapes(config: DecoderConfig): LayerShapes {
  return { qRows: config.numQHeads * config.headDim, kvRows: config.numKvHeads * config.headDim };
}

export const layerPrefix = (layer: number): string => `model.layers.${layer}`;

/** q, k and v of one layer, in the order of the fused product. */
export function qkvParts(
  config: DecoderConfig,
  layer: number,
  suffix: "weight" | "bias",
): readonly StackedTensor[] {
  const { qRows, kvRows } = layerShapes(config);
  const name = (projection: string) => `${layerPrefix(layer)}.self_attn.${projection}_proj.${suffix}`;
  return [
    { name: name("q"), rows: qRows },
    { name: name("k"), rows: kvRows },
    { name: name("v"), rows: kvRows },
  ];
}

/** Gate and up of one feed-forward. */
export function gateUpParts(
  prefix: string,
  inner: number,
  suffix: "weight" | "bias",
): readonly StackedTensor[] {
  return [
    { name: `${prefix}.gate_proj.${suffix}`, rows: inner },
    { name: `${prefix}.up_proj.${suffix}`, rows: inner },
  ];
}

function matrices(parts: readonly StackedTensor[], columns: number): readonly RequiredTensor[] {
  return parts.map(({ name, rows }) => ({ name, shape: [rows, columns] }));
}

function vectors(parts: readonly StackedTensor[]): readonly RequiredTensor[] {
  return parts.map(({ name, rows }) => ({ name, shape: [rows] }));
}

function attentionTensors(config: DecoderConfig, layer: number): readonly RequiredTensor[] {
  const { hiddenSize, headDim } = config;
  const prefix = `${layerPrefix(layer)}.self_attn`;
  const output = [{ name: `${prefix}.o_proj.weight`, rows: hiddenSize }];
  return [
    ...matrices(qkvParts(config, layer, "weight"), hiddenSize),
    ...(config.hasQkvBias ? vectors(qkvParts(config, layer, "bias")) : []),
    ...matrices(output, layerShapes(config).qRows),
    ...(config.hasOutputBias ? vectors([{ name: `${prefix}.o_proj.bias`, rows: hiddenSize }]) : []),
    ...(config.hasHeadNorms
      ? vectors([
          { name: `${prefix}.q_norm.weight`, rows: headDim },
          { name: `${prefix}.k_norm.weight`, rows: headDim },
        ])
      : []),
  ];
}

function mlpTensors(
  config: DecoderConfig,
  prefix: string,
  inner: number,
  bias: boolean,
): readonly RequiredTensor[] {
  const { hiddenSize } = config;
  return [
    ...matrices(gateUpParts(prefix, inner, "weight"), hiddenSize),
    ...matrices([{ name: `${prefix}.down_proj.weight`, rows: hiddenSize }], inner),
    ...(bias ? vectors(gateUpParts(prefix, inner, "bias")) : []),
    ...(bias ? vectors([{ name: `${prefix}.down_proj.bias`, rows: hiddenSize }]) : []),
  ];
}

function feedForwardTensors(config: DecoderConfig, layer: number): readonly RequiredTensor[] {
  const prefix = `${layerPrefix(layer)}.mlp`;
  const { moe } = config;
  if (moe === undefined || !moe.isSparse[layer]) {
    return mlpTensors(config, prefix, config.intermediateSize, config.hasMlpBias);
  }
  const router = { name: `${prefix}.gate.weight`, shape: [moe.numExperts, config.hiddenSize] };
  const experts = Array.from({ length: moe.numExperts }, (_, expert) =>
    mlpTensors(config, `${prefix}.experts.${expert}`, moe.intermediateSize, false),
  );
  return [router, ...experts.flat()];
}

/** Every tensor but the output matrix, which may be tied to the embedding. */
export function requiredTensors(config: DecoderConfig): readonly RequiredTensor[] {
  const { hiddenSize, vocabSize } = config;
  const layers = Array.from({ length: config.numLayers }, (_, layer) => [
    { name: `${layerPrefix(layer)}.input_layernorm.weight`, shape: [hiddenSize] },
    ...attentionTensors(config, layer),
    { name: `${layerPrefix(layer)}.post_attention_layernorm.weight`, shape: [hiddenSize] },
    ...feedForwardTensors(config, layer),
  ]);
  return [
    { name: embeddingName, shape: [vocabSize, hiddenSize] },
    ...layers.flat(),
    { name: finalNormName, shape: [hiddenSize] },
  ];
}

export function outputTensor(config: DecoderConfig): RequiredTensor {
  return { name: outputName, shape: [config.vocabSize, config.hiddenSize] };
}

/** Tensors that some exporters leave behind and that no decoder reads. */
export function isLeftover(name: string): boolean {
  return name.endsWith(".rotary_emb.inv_freq");
}
