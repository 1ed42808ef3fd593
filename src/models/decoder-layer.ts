/**
 * One layer of a plain decoder: attention and feed-forward,
 * each behind a norm and added to the residual stream.
 */
import type { BuildContext, StepShape } from "../layers/build-context";
import { GatedMlp } from "../layers/gated-mlp";
import { Linear } from "../layers/linear";
import { MixtureOfExperts } from "../layers/moe";
import { PagedAttention } from "../layers/paged-attention";
import { RmsNorm } from "../layers/rms-norm";
import type { RopeTable } from "../layers/rope";
import type { Tensor } from "../layers/tensor";
import type { DecoderConfig, MoeConfig } from "./decoder-config";
import { gateUpParts, layerPrefix, layerShapes, qkvParts } from "./decoder-weights";
import type { CacheRows } from "./model";

interface FeedForward {
  run(rows: number): void;
}

export class DecoderLayer {
  readonly #attentionNorm: RmsNorm;
  readonly #qkv: Linear;
  readonly #attention: PagedAttention;
  readonly #output: Linear;
  readonly #feedForwardNorm: RmsNorm;
  readonly #feedForward: FeedForward;

  /** `stream` is the residual stream, changed in place. */
  constructor(context: BuildContext, config: DecoderConfig, layer: number, stream: Tensor, rope: RopeTable) {
    const { loader, buffers } = context;
    const prefix = layerPrefix(layer);
    const { qRows, kvRows } = layerShapes(config);
    const normed = buffers.tensor("normed", config.hiddenSize);
    const qkv = buffers.tensor("qkv", qRows + 2 * kvRows);
    const attended = buffers.tensor("attended", qRows);
    const vector = (name: string, rows: number) => loader.vector([{ name, rows }]);
    const norm = (name: string) =>
      new RmsNorm(context, {
        input: stream,
        output: normed,
        weight: vector(`${prefix}.${name}.weight`, config.hiddenSize),
        epsilon: config.rmsNormEpsilon,
      });
    this.#attentionNorm = norm("input_layernorm");
    this.#qkv = new Linear(context, {
      input: normed,
      output: qkv,
      weight: loader.matrix(qkvParts(config, layer, "weight"), config.hiddenSize),
      bias: config.hasQkvBias ? loader.vector(qkvParts(config, layer, "bias")) : undefined,
    });
    this.#attention = new PagedAttention(context, {
      layer,
      heads: {
        numQHeads: config.numQHeads,
        numKvHeads: config.numKvHeads,
        headDim: config.headDim,
        vHeadDim: config.headDim,
      },
      windowLeft: config.layerLabels[layer] === "full_attention" ? -1 : (config.slidingWindow ?? 0) - 1,
      qkv,
      output: attended,
      rope,
      norms: config.hasHeadNorms
        ? {
            q: vector(`${prefix}.self_attn.q_norm.weight`, config.headDim),
            k: vector(`${prefix}.self_attn.k_norm.weight`, config.headDim),
            epsilon: config.rmsNormEpsilon,
          }
        : undefined,
    });
    this.#output = new Linear(context, {
      input: attended,
      output: stream,
      weight: loader.matrix([{ name: `${prefix}.self_attn.o_proj.weight`, rows: config.hiddenSize }], qRows),
      bias: config.hasOutputBias ? vector(`${prefix}.self_attn.o_proj.bias`, config.hiddenSize) : undefined,
      residual: stream,
    });
    this.#feedForwardNorm = norm("post_attention_layernorm");
    const isSparse = config.moe?.isSparse[layer] ?? false;
    this.#feedForward =
      config.moe !== undefined && isSparse
        ? mixture(context, config, config.moe, `${prefix}.mlp`, normed, stream)
        : mlp(context, config, `${prefix}.mlp`, normed, stream);
  }

  bindCache(rows: CacheRows): void {
    const { layer } = this.#attention;
    this.#attention.bindCache(
      rows.fieldView(`layer.${layer}.k`).base,
      rows.fieldView(`layer.${layer}.v`).base,
    );
  }

  run(step: StepShape): void {
    this.#attentionNorm.run(step.rows);
    this.#qkv.run(step.rows);
    this.#attention.run(step);
    this.#output.run(step.rows);
    this.#feedForwardNorm.run(step.rows);
    this.#feedForward.run(step.rows);
  }
}

function mlp(
  context: BuildContext,
  config: DecoderConfig,
  prefix: string,
  input: Tensor,
  stream: Tensor,
): FeedForward {
  const { loader } = context;
  const { hiddenSize, intermediateSize: inner, hasMlpBias } = config;
  return new GatedMlp(context, {
    input,
    stream,
    gateUp: loader.matrix(gateUpParts(prefix, inner, "weight"), hiddenSize),
    gateUpBias: hasMlpBias ? loader.vector(gateUpParts(prefix, inner, "bias")) : undefined,
    down: loader.matrix([{ name: `${prefix}.down_proj.weight`, rows: hiddenSize }], inner),
    downBias: hasMlpBias
      ? loader.vector([{ name: `${prefix}.down_proj.bias`, rows: hiddenSize }])
      : undefined,
  });
}

function mixture(
  context: BuildContext,
  config: DecoderConfig,
  moe: MoeConfig,
  prefix: string,
  input: Tensor,
  stream: Tensor,
): FeedForward {
  const { loader } = context;
  const experts = Array.from({ length: moe.numExperts }, (_, expert) => `${prefix}.experts.${expert}`);
  const inner = moe.intermediateSize;
  return new MixtureOfExperts(context, {
    input,
    stream,
    router: loader.matrix([{ name: `${prefix}.gate.weight`, rows: moe.numExperts }], config.hiddenSize),
    gateUp: loader.matrix(
      experts.flatMap((expert) => gateUpParts(expert, inner, "weight")),
      config.hiddenSize,
    ),
    down: loader.matrix(
      experts.map((expert) => ({ name: `${expert}.down_proj.weight`, rows: config.hiddenSize })),
      inner,
    ),
    numExperts: moe.numExperts,
    expertsPerToken: moe.expertsPerToken,
    routing: moe.normaliseWeights ? "softmaxTopKNormalised" : "softmaxTopK",
  });
}
