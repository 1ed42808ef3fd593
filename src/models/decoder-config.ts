/**
 * Configuration of plain decoders: llama, mistral, qwen2,
 * qwen3, qwen3_moe, as their config.json files spell it.
 */

import type { RopeConfig } from "../layers/rope";
import { maxExpertsPerToken } from "../limits";
import type { LayerLabel } from "../recipes/group";
import type { ConfigReader } from "./config-reader";
import { maxPositionsOf, readRopeConfig } from "./rope-config";

export interface MoeConfig {
  readonly numExperts: number;
  readonly expertsPerToken: number;
  readonly intermediateSize: number;
  readonly normaliseWeights: boolean;
  /** By layer: true where the feed-forward is a mixture. */
  readonly isSparse: readonly boolean[];
}

export interface DecoderConfig {
  readonly modelType: string;
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly numLayers: number;
  readonly numQHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly rmsNormEpsilon: number;
  readonly hasQkvBias: boolean;
  readonly hasOutputBias: boolean;
  readonly hasMlpBias: boolean;
  /** Root-mean-square norms over each head of q and k. */
  readonly hasHeadNorms: boolean;
  /** What the configuration says; undefined where it is silent. */
  readonly tieWordEmbeddings: boolean | undefined;
  readonly rope: RopeConfig;
  readonly maxPositions: number;
  /** One label a layer. */
  readonly layerLabels: readonly LayerLabel[];
  /** Of sliding layers, the querying token included. */
  readonly slidingWindow: number | undefined;
  readonly moe: MoeConfig | undefined;
}

/** What distinguishes the types beyond their options. */
interface Family {
  readonly biases: (config: ConfigReader) => {
    readonly qkv: boolean;
    readonly output: boolean;
    readonly mlp: boolean;
  };
  readonly hasHeadNorms: boolean;
  readonly isMoe: boolean;
}

/** Of mistral where the configuration does not mention a window at all. */
const defaultMistralWindow = 4096;

/** Layers that never slide in qwen2 and qwen3 when the configuration names no number. */
const defaultFullLayers = 28;

const noBias = { qkv: false, output: false, mlp: false };

/** One flag for the four projections of attention. */
const attentionBias = (config: ConfigReader) => {
  const bias = config.flag("attention_bias", false);
  return { qkv: bias, output: bias, mlp: false };
};

const families: Readonly<Record<string, Family>> = {
  llama: {
    biases: (config) => ({ ...attentionBias(config), mlp: config.flag("mlp_bias", false) }),
    hasHeadNorms: false,
    isMoe: false,
  },
  mistral: { biases: () => noBias, hasHeadNorms: false, isMoe: false },
  qwen2: { biases: () => ({ ...noBias, qkv: true }), hasHeadNorms: false, isMoe: false },
  qwen3: { biases: attentionBias, hasHeadNorms: true, isMoe: false },
  qwen3_moe: { biases: attentionBias, hasHeadNorms: true, isMoe: true },
};

export function isDecoderModelType(modelType: string): boolean {
  return Object.hasOwn(families, modelType);
}

export const decoderModelTypes: readonly string[] = Object.keys(families);

/** Which layers slide, and how far back they see. */
interface SlidingRule {
  readonly window: number | undefined;
  /** First layer that slides unless layer_types says otherwise. */
  readonly firstSliding: number;
}

/**
 * The architectures' own rules and defaults: mistral slides
 * everywhere, qwen2 and qwen3 from a layer on, llama never.
 */
function readSlidingRule(config: ConfigReader, modelType: string): SlidingRule {
  const window = config.has("sliding_window") ? config.count("sliding_window") : undefined;
  if (modelType === "llama") return { window: undefined, firstSliding: 0 };
  if (modelType === "mistral") {
    if (config.keys().includes("sliding_window")) return { window, firstSliding: 0 };
    config.remark(`sliding_window is not set: ${defaultMistralWindow}, the architecture's own, is used`);
    return { window: defaultMistralWindow, firstSliding: 0 };
  }
  const lists = config.has("layer_types");
  const isUsed = config.flag("use_sliding_window", lists);
  const firstSliding = modelType === "qwen3_moe" ? 0 : config.number("max_window_layers", defaultFullLayers);
  return { window: isUsed ? window : undefined, firstSliding };
}

function readListedLabels(config: ConfigReader, listed: unknown, modelType: string, numLayers: number) {
  if (!Array.isArray(listed) || listed.length !== numLayers)
    config.fail(`layer_types must list ${numLayers} layers`);
  const allowed = modelType === "llama" ? ["full_attention"] : ["full_attention", "sliding_attention"];
  const foreign = listed.find((label) => !allowed.includes(label));
  if (foreign !== undefined)
    config.fail(`layer type ${JSON.stringify(foreign)} is not supported in ${modelType}`);
  return listed as LayerLabel[];
}

function readLayerLabels(config: ConfigReader, modelType: string, numLayers: number) {
  const { window, firstSliding } = readSlidingRule(config, modelType);
  const listed = config.raw("layer_types");
  const labels =
    listed === undefined
      ? Array.from({ length: numLayers }, (_, layer) =>
          window !== undefined && layer >= firstSliding ? "sliding_attention" : "full_attention",
        )
      : readListedLabels(config, listed, modelType, numLayers);
  const slides = labels.includes("sliding_attention");
  if (slides && window === undefined)
    config.fail("layer_types has sliding layers, but sliding_window is missing or not used");
  return { labels, window: slides ? window : undefined };
}

function readMoe(config: ConfigReader, numLayers: number): MoeConfig {
  const isOlderName = !config.has("num_experts") && config.has("num_local_experts");
  const numExperts = config.count(isOlderName ? "num_local_experts" : "num_experts");
  const expertsPerToken = config.count("num_experts_per_tok");
  if (expertsPerToken > numExperts)
    config.fail(`num_experts_per_tok ${expertsPerToken} exceeds ${numExperts} experts`);
  if (expertsPerToken > maxExpertsPerToken)
    config.fail(`num_experts_per_tok ${expertsPerToken} is more than ${maxExpertsPerToken}`);
  const step = config.count("decoder_sparse_step", 1);
  const dense = config.raw("mlp_only_layers") ?? [];
  const isLayer = (value: unknown) =>
    Number.isInteger(value) && Number(value) >= 0 && Number(value) < numLayers;
  if (!Array.isArray(dense) || !dense.every(isLayer))
    config.fail(`mlp_only_layers must list layers from 0 to ${numLayers - 1}`);
  return {
    numExperts,
    expertsPerToken,
    intermediateSize: config.count("moe_intermediate_size"),
    normaliseWeights: config.flag("norm_topk_prob", false),
    isSparse: Array.from(
      { length: numLayers },
      (_, layer) => !dense.includes(layer) && (layer + 1) % step === 0,
    ),
  };
}

/** Options that would change the answer and that no type of this family has. */
function refuseForeignOptions(config: ConfigReader): void {
  config.refuseUnless("hidden_act", ["silu", "swish"], "only silu feed-forwards are");
  config.refuseUnless("quantization_config", [], "weights must be bfloat16, float16 or float32");
  config.refuseUnless("final_logit_softcapping", [], "plain decoders have uncapped logits");
  config.refuseUnless("attn_logit_softcapping", [], "plain decoders have uncapped scores");
  for (const key of [
    "logit_scale",
    "logits_scaling",
    "embedding_multiplier",
    "residual_multiplier",
    "scale_emb",
  ]) {
    config.refuseUnless(key, [1], "plain decoders scale nothing");
  }
  for (const key of [
    "attention_multiplier",
    "query_pre_attn_scalar",
    "num_nextn_predict_layers",
    "clip_qkv",
  ]) {
    config.refuseUnless(key, [0], "no plain decoder has it");
  }
  config.refuseUnless("is_decoder", [true, false], "it must be a flag");
  config.refuseUnless("add_cross_attention", [false], "there is no encoder");
}

export function readDecoderConfig(config: ConfigReader): DecoderConfig {
  const modelType = config.text("model_type");
  const family = families[modelType];
  if (family === undefined) config.fail(`model_type '${modelType}' is not a plain decoder`);
  refuseForeignOptions(config);
  const hiddenSize = config.count("hidden_size");
  const numQHeads = config.count("num_attention_heads");
  const numKvHeads = config.count("num_key_value_heads", numQHeads);
  if (numQHeads % numKvHeads !== 0)
    config.fail(`${numKvHeads} key-value heads do not divide ${numQHeads} query heads`);
  if (!config.has("head_dim") && hiddenSize % numQHeads !== 0) {
    config.fail(`${numQHeads} heads do not divide the hidden size ${hiddenSize} and head_dim is missing`);
  }
  const headDim = config.count("head_dim", hiddenSize / numQHeads);
  const numLayers = config.count("num_hidden_layers");
  const maxPositionEmbeddings = config.count("max_position_embeddings", 2048);
  const rope = readRopeConfig(config, headDim, maxPositionEmbeddings);
  const { labels, window } = readLayerLabels(config, modelType, numLayers);
  const biases = family.biases(config);
  const rmsNormEpsilon = config.number("rms_norm_eps", 1e-6);
  if (rmsNormEpsilon <= 0) config.fail(`rms_norm_eps must be positive, not ${rmsNormEpsilon}`);
  return {
    modelType,
    vocabSize: config.count("vocab_size"),
    hiddenSize,
    intermediateSize: config.count("intermediate_size"),
    numLayers,
    numQHeads,
    numKvHeads,
    headDim,
    rmsNormEpsilon,
    hasQkvBias: biases.qkv,
    hasOutputBias: biases.output,
    hasMlpBias: biases.mlp,
    hasHeadNorms: family.hasHeadNorms,
    tieWordEmbeddings: config.has("tie_word_embeddings")
      ? config.flag("tie_word_embeddings", false)
      : undefined,
    rope,
    maxPositions: maxPositionsOf(rope, maxPositionEmbeddings),
    layerLabels: labels,
    slidingWindow: window,
    moe: family.isMoe ? readMoe(config, numLayers) : undefined,
  };
}
