/**
 * The tensors a decoder's checkpoint must hold, written out from
 * the architectures' conventions. Twin of the models' own list.
 */
import type { JsonObject } from "../../src/models/config-reader";

export type TensorShapes = Readonly<Record<string, readonly number[]>>;

interface Dimensions {
  readonly hidden: number;
  readonly inner: number;
  readonly qRows: number;
  readonly kvRows: number;
  readonly headDim: number;
}

function dimensionsOf(config: JsonObject): Dimensions {
  const number = (key: string) => config[key] as number;
  const headDim =
    (config.head_dim as number | undefined) ?? number("hidden_size") / number("num_attention_heads");
  return {
    hidden: number("hidden_size"),
    inner: number("intermediate_size"),
    qRows: number("num_attention_heads") * headDim,
    kvRows: number("num_key_value_heads") * headDim,
    headDim,
  };
}

function attentionShapes(config: JsonObject, prefix: string): TensorShapes {
  const { hidden, qRows, kvRows, headDim } = dimensionsOf(config);
  const type = config.model_type as string;
  const rows = { q: qRows, k: kvRows, v: kvRows } as const;
  const shapes: Record<string, readonly number[]> = { [`${prefix}.o_proj.weight`]: [hidden, qRows] };
  for (const [name, count] of Object.entries(rows)) {
    shapes[`${prefix}.${name}_proj.weight`] = [count, hidden];
    if (config.attention_bias || type === "qwen2") shapes[`${prefix}.${name}_proj.bias`] = [count];
  }
  if (config.attention_bias) shapes[`${prefix}.o_proj.bias`] = [hidden];
  if (type.startsWith("qwen3")) {
    shapes[`${prefix}.q_norm.weight`] = [headDim];
    shapes[`${prefix}.k_norm.weight`] = [headDim];
  }
  return shapes;
}

function mlpShapes(prefix: string, hidden: number, inner: number, bias: boolean): TensorShapes {
  const shapes: Record<string, readonly number[]> = {
    [`${prefix}.gate_proj.weight`]: [inner, hidden],
    [`${prefix}.up_proj.weight`]: [inner, hidden],
    [`${prefix}.down_proj.weight`]: [hidden, inner],
  };
  if (!bias) return shapes;
  return {
    ...shapes,
    [`${prefix}.gate_proj.bias`]: [inner],
    [`${prefix}.up_proj.bias`]: [inner],
    [`${prefix}.down_proj.bias`]: [hidden],
  };
}

/** True where a layer's feed-forward is a mixture. */
export function isSparseLayer(config: JsonObject, layer: number): boolean {
  if (config.model_type !== "qwen3_moe") return false;
  const dense = (config.mlp_only_layers as number[] | undefined) ?? [];
  const step = (config.decoder_sparse_step as number | undefined) ?? 1;
  return !dense.includes(layer) && (layer + 1) % step === 0;
}

function feedForwardShapes(config: JsonObject, layer: number): TensorShapes {
  const { hidden, inner } = dimensionsOf(config);
  const prefix = `model.layers.${layer}.mlp`;
  if (!isSparseLayer(config, layer)) return mlpShapes(prefix, hidden, inner, config.mlp_bias === true);
  const experts = config.num_experts as number;
  const parts = Array.from({ length: experts }, (_, expert) =>
    mlpShapes(`${prefix}.experts.${expert}`, hidden, config.moe_intermediate_size as number, false),
  );
  return Object.assign({ [`${prefix}.gate.weight`]: [experts, hidden] }, ...parts);
}

/** Every tensor by name; the output matrix unless it is tied. */
export function decoderTensors(config: JsonObject): TensorShapes {
  const hidden = config.hidden_size as number;
  const matrix = [config.vocab_size as number, hidden];
  const layers = Array.from({ length: config.num_hidden_layers as number }, (_, layer) => ({
    [`model.layers.${layer}.input_layernorm.weight`]: [hidden],
    [`model.layers.${layer}.post_attention_layernorm.weight`]: [hidden],
    ...attentionShapes(config, `model.layers.${layer}.self_attn`),
    ...feedForwardShapes(config, layer),
  }));
  const ends = { "model.embed_tokens.weight": matrix, "model.norm.weight": [hidden] };
  const output = config.tie_word_embeddings === true ? {} : { "lm_head.weight": matrix };
  return Object.assign({}, ends, output, ...layers);
}
