/** What every layer is built from: the device, the weights, the buffers and the cache views. */
import type { Device, Dtype } from "../../ffi/device";
import type { AttentionMask, LayerCacheView } from "../mapping/cache-group-router";
import type { AttentionKernels } from "../runtime-kernels/attention-kernels";
import type { WeightLoader } from "../weights/weight-loader";
import type { ActivationBuffers, Tensor } from "./tensor";

/** Device addresses of what one step feeds to the layers; fixed for the life of the engine. */
export interface StepOperands {
  /** int32 [rows]. */
  readonly tokenIds: number;
  readonly positions: number;
  /** Prefill sequences: int32 [seqs], [seqs + 1], [seqs]. */
  readonly prefillTableRows: number;
  readonly prefillQueryStarts: number;
  readonly prefillSeqLens: number;
  /** Decode sequences, one row each: int32 [seqs]. */
  readonly decodeTableRows: number;
  readonly decodeSeqLens: number;
}

/** Upper bounds that fix scratch sizes and grids. */
export interface StepBounds {
  readonly maxRows: number;
  readonly maxSeqs: number;
  readonly maxSeqLen: number;
  /** Rows whose logits are computed at once. */
  readonly maxLogitRows: number;
}

export interface BuildContext {
  readonly device: Device;
  readonly loader: WeightLoader;
  readonly buffers: ActivationBuffers;
  readonly operands: StepOperands;
  readonly bounds: StepBounds;
  readonly kvDtype: Dtype;
  readonly attentionKernels: AttentionKernels;
  /** How a layer's cache rows are reached, by the layer's number in the model and its mask. */
  layerCache(layer: number, mask: AttentionMask): LayerCacheView;
}

/** Host-side shape of one step; everything else is in the operands. Prefill rows come first. */
export interface StepShape {
  readonly rows: number;
  readonly prefillSeqs: number;
  readonly prefillRows: number;
  /** Longest query of a prefill sequence. */
  readonly maxQueryTokens: number;
  readonly decodeSeqs: number;
  /** Longest sequence of the step, new tokens included. */
  readonly maxSeqLen: number;
}

export type { Tensor };
