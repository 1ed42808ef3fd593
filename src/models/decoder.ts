/**
 * The plain decoder: embedding, a stack of layers, a norm and
 * an output matrix. Knows masks and shapes, never cache ids.
 */
import { type Dtype, dtypeBytes, dtypes } from "../../ffi/device";
import { GranaryError } from "../assert";
import type { BuildContext, StepShape } from "../layers/build-context";
import { Linear } from "../layers/linear";
import { RmsNorm } from "../layers/rms-norm";
import { RopeTable } from "../layers/rope";
import { dtypeNumber } from "../layers/tensor";
import { plainCacheGroups, plainCacheLayout } from "../recipes/plain";
import { checkManifest } from "../weights/manifest";
import { isSameTensor } from "../weights/same-tensor";
import type { TensorSource } from "../weights/tensor-source";
import type { Weight } from "../weights/weight-loader";
import type { DecoderConfig } from "./decoder-config";
import { DecoderLayer } from "./decoder-layer";
import {
  embeddingName,
  finalNormName,
  isLeftover,
  outputName,
  outputTensor,
  requiredTensors,
} from "./decoder-weights";
import type { BuiltModel, CacheOptions, Model } from "./model";

/** Where the output matrix comes from, by what the configuration says and what the files hold. */
function outputSource(
  config: DecoderConfig,
  source: TensorSource,
): { readonly isTied: boolean; readonly remark?: string } {
  const isShipped =
    source.list() === undefined ? config.tieWordEmbeddings !== true : source.find(outputName) !== undefined;
  if (config.tieWordEmbeddings === false || (config.tieWordEmbeddings === undefined && isShipped)) {
    return { isTied: false };
  }
  if (config.tieWordEmbeddings === undefined) {
    return {
      isTied: true,
      remark: `tie_word_embeddings is not set and ${outputName} is absent: the embedding is used`,
    };
  }
  if (!isShipped || isSameTensor(source, embeddingName, outputName)) return { isTied: true };
  return {
    isTied: false,
    remark: `tie_word_embeddings is true, but ${outputName} differs from the embedding and is used`,
  };
}

export class Decoder implements Model {
  readonly config: DecoderConfig;
  readonly remarks: string[];
  #isTied: boolean | undefined;

  constructor(config: DecoderConfig, remarks: readonly string[]) {
    this.config = config;
    this.remarks = [...remarks];
  }

  get modelType(): string {
    return this.config.modelType;
  }

  get vocabSize(): number {
    return this.config.vocabSize;
  }

  get maxPositions(): number {
    return this.config.maxPositions;
  }

  get numParameters(): number {
    const tensors = [...requiredTensors(this.config), ...(this.#isTied ? [] : [outputTensor(this.config)])];
    return tensors.reduce(
      (sum, { shape }) => sum + shape.reduce((product, extent) => product * extent, 1),
      0,
    );
  }

  weightBytes(dtype: Dtype): number {
    return this.numParameters * dtypeBytes[dtype];
  }

  checkWeights(source: TensorSource): void {
    const { isTied, remark } = outputSource(this.config, source);
    if (remark !== undefined) this.remarks.push(remark);
    this.#isTied = isTied;
    const needed = [...requiredTensors(this.config), ...(isTied ? [] : [outputTensor(this.config)])];
    checkManifest(source, needed, (name) => isLeftover(name) || name === outputName);
  }

  cacheGroups(options: CacheOptions) {
    const { layerLabels, slidingWindow, numKvHeads, headDim } = this.config;
    return plainCacheGroups({
      layerLabels,
      window: slidingWindow,
      numKvHeads,
      headDim,
      vHeadDim: headDim,
      ...options,
    });
  }

  cacheLayout(groups: ReturnType<Decoder["cacheGroups"]>, options: CacheOptions) {
    return plainCacheLayout(groups, options.prefixGranularity);
  }

  build(context: BuildContext): BuiltModel {
    if (this.#isTied === undefined)
      throw new GranaryError("unchecked_weights", "weights are checked before they are loaded");
    return buildDecoder(context, this.config, this.#isTied);
  }
}

function buildDecoder(context: BuildContext, config: DecoderConfig, isTied: boolean): BuiltModel {
  const { device, loader, buffers, operands, bounds } = context;
  const { hiddenSize, vocabSize } = config;
  const table = loader.matrix([{ name: embeddingName, rows: vocabSize }], hiddenSize);
  const stream = buffers.tensor("stream", hiddenSize);
  const embedding = device.op("embedding", {
    table: table.address,
    ids: operands.tokenIds,
    out: stream.address,
    columns: hiddenSize,
    vocab: vocabSize,
    dtype: dtypeNumber(stream),
    tableDtype: dtypes[table.dtype],
    scale: 1,
  });
  const rope = new RopeTable(context, config.rope);
  const layers = Array.from(
    { length: config.numLayers },
    (_, layer) => new DecoderLayer(context, config, layer, stream, rope),
  );
  const output: Weight = isTied ? table : loader.matrix([{ name: outputName, rows: vocabSize }], hiddenSize);
  const gathered = buffers.tensor("gathered", hiddenSize, { rows: bounds.maxLogitRows });
  const logits = buffers.tensor("logits", vocabSize, { rows: bounds.maxLogitRows, dtype: "float32" });
  const gather = device.op("gatherRows", {
    x: stream.address,
    out: gathered.address,
    xStride: stream.stride,
    outStride: gathered.stride,
    columns: hiddenSize,
    dtype: dtypeNumber(stream),
  });
  const norm = new RmsNorm(context, {
    input: gathered,
    output: gathered,
    weight: loader.vector([{ name: finalNormName, rows: hiddenSize }]),
    epsilon: config.rmsNormEpsilon,
  });
  const project = new Linear(context, { input: gathered, output: logits, weight: output });
  return {
    logits,
    bindCache(rows) {
      for (const layer of layers) layer.bindCache(rows);
    },
    forward(step: StepShape) {
      embedding.set("rows", step.rows).launch();
      rope.run(step.rows);
      for (const layer of layers) layer.run(step);
    },
    computeLogits(rowIndices, rows) {
      gather.set("indices", rowIndices).set("rows", rows).launch();
      norm.run(rows);
      project.run(rows);
    },
  };
}
