/**
 * Attention of one layer over its cache rows: optional head norms, rotation and cache write, then every query
 * against all keys its mask lets it see. Prefill and decode sequences of a step are one launch each.
 */
import { type Address, type Device, dtypeBytes, dtypes, type Op } from "../../ffi/device";
import type { LayerCacheView } from "../mapping/cache-group-router";
import type { BuildContext, StepShape } from "./build-context";
import type { RopeTable } from "./rope";
import { dtypeNumber, type Tensor } from "./tensor";

export interface HeadGeometry {
  readonly numQHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly vHeadDim: number;
}

export interface PagedAttentionOptions {
  readonly layer: number;
  readonly heads: HeadGeometry;
  /** Keys before the query that it may see; -1 = all. */
  readonly windowLeft: number;
  /** [rows, all heads of q, k and v]. */
  readonly qkv: Tensor;
  readonly output: Tensor;
  readonly rope: RopeTable;
  /** float32 [headDim] each. */
  readonly norms?: { readonly q: Address; readonly k: Address; readonly epsilon: number } | undefined;
}

export class PagedAttention {
  /** Number of the layer in the model. */
  readonly layer: number;
  readonly #qkv: Op<"qkv">;
  readonly #prefill: Op<"attention">;
  readonly #decode: Op<"attention">;
  readonly #query: Tensor;
  readonly #output: Tensor;

  constructor(context: BuildContext, options: PagedAttentionOptions) {
    const { device, operands, bounds } = context;
    const view = context.layerCache(options.layer, { windowLeft: options.windowLeft });
    this.layer = options.layer;
    this.#query = options.qkv;
    this.#output = options.output;
    this.#qkv = qkvOp(context, options, view);
    const { pageSize, kPageStrideBytes, vPageStrideBytes } = view;
    context.attentionKernels.provide({
      headDim: options.heads.headDim,
      vHeadDim: options.heads.vHeadDim,
      dtype: options.qkv.dtype,
      kvDtype: context.kvDtype,
      pageSize,
      kPageStrideBytes,
      vPageStrideBytes,
    });
    const shared = attentionFields(context, options, view);
    this.#prefill = device.op("attention", {
      ...shared,
      tableRows: operands.prefillTableRows,
      queryStarts: operands.prefillQueryStarts,
      seqLens: operands.prefillSeqLens,
      numSeqs: bounds.maxSeqs,
      maxQueryTokens: bounds.maxRows,
      maxSeqLen: bounds.maxSeqLen,
    });
    this.#decode = device.op("attention", {
      ...shared,
      tableRows: operands.decodeTableRows,
      seqLens: operands.decodeSeqLens,
      tokensPerRow: 1,
      numSeqs: bounds.maxSeqs,
      maxQueryTokens: 1,
      maxSeqLen: bounds.maxSeqLen,
    });
    const scratch = context.buffers.scratch("attention", scratchBytes(device, [this.#prefill, this.#decode]));
    this.#prefill.set("scratch", scratch);
    this.#decode.set("scratch", scratch);
  }

  /** Tells where the layer's rows lie; before the first run. */
  bindCache(kBase: Address, vBase: Address): void {
    for (const op of [this.#qkv, this.#prefill, this.#decode])
      op.block.setAll({ kCache: kBase, vCache: vBase });
  }

  run(step: StepShape): void {
    this.#qkv.set("rows", step.rows).launch();
    if (step.prefillSeqs > 0) {
      this.#prefill
        .set("numSeqs", step.prefillSeqs)
        .set("maxQueryTokens", step.maxQueryTokens)
        .set("maxSeqLen", step.maxSeqLen)
        .launch();
    }
    if (step.decodeSeqs > 0) {
      this.#decode
        .set("q", rowAddress(this.#query, step.prefillRows))
        .set("out", rowAddress(this.#output, step.prefillRows))
        .set("numSeqs", step.decodeSeqs)
        .set("maxSeqLen", step.maxSeqLen)
        .launch();
    }
  }
}

function rowAddress(tensor: Tensor, row: number): Address {
  return tensor.address + row * tensor.stride * dtypeBytes[tensor.dtype];
}

function scratchBytes(device: Device, ops: readonly Op<"attention">[]): number {
  return Math.max(...ops.map((op) => device.scratchBytes("attention", op.block)));
}

function qkvOp(context: BuildContext, options: PagedAttentionOptions, view: LayerCacheView): Op<"qkv"> {
  const { heads, qkv, rope, norms } = options;
  return context.device.op("qkv", {
    qkv: qkv.address,
    qOut: qkv.address,
    qNorm: norms?.q ?? 0,
    kNorm: norms?.k ?? 0,
    cosSin: rope.cosSin.address,
    locations: view.locations,
    qkvStride: qkv.stride,
    qOutStride: qkv.stride,
    kPageStrideBytes: view.kPageStrideBytes,
    vPageStrideBytes: view.vPageStrideBytes,
    ...heads,
    pairs: rope.pairs,
    pageSize: view.pageSize,
    dtype: dtypeNumber(qkv),
    kvDtype: dtypes[context.kvDtype],
    eps: norms?.epsilon ?? 0,
  });
}

function attentionFields(context: BuildContext, options: PagedAttentionOptions, view: LayerCacheView) {
  const { heads, qkv, output, windowLeft } = options;
  return {
    q: qkv.address,
    pageTable: view.pageTable,
    out: output.address,
    qStride: qkv.stride,
    outStride: output.stride,
    kPageStrideBytes: view.kPageStrideBytes,
    vPageStrideBytes: view.vPageStrideBytes,
    tableWidth: view.pageTableWidth,
    pageSize: view.pageSize,
    ...heads,
    windowLeft,
    dtype: dtypeNumber(qkv),
    kvDtype: dtypes[context.kvDtype],
    scale: heads.headDim ** -0.5,
  };
}
