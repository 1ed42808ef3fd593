/**
 * What every architecture offers to the engine: its weights
 * by name, its cache declaration, and a forward to launch.
 */
import type { Dtype } from "../../ffi/device";
import type { BuildContext, StepShape } from "../layers/build-context";
import type { Tensor } from "../layers/tensor";
import type { CacheDtype, CacheGroupDeclaration } from "../recipes/cache-spec";
import type { CacheLayout } from "../recipes/pack";
import type { RequiredTensor } from "../weights/manifest";
import type { TensorSource } from "../weights/tensor-source";

export interface CacheOptions {
  readonly prefixGranularity: number;
  readonly kvDtype: CacheDtype;
}

/** Where planned cache fields lie. */
export interface CacheRows {
  fieldView(fieldId: string): { readonly base: number };
}

/** Weights and ops on one device. */
export interface BuiltModel {
  /** float32 [bounds.maxLogitRows, vocabSize]: logits of the rows that were asked for. */
  readonly logits: Tensor;
  /** Tells every layer where its cache rows lie; once, before the first forward. */
  bindCache(rows: CacheRows): void;
  /** Enqueues everything from token ids to the last hidden state of every row. */
  forward(step: StepShape): void;
  /**
   * Enqueues the output product of the hidden rows whose indices lie at `rowIndices` (int32 on the device).
   */
  computeLogits(rowIndices: number, rows: number): void;
}

export interface Model {
  readonly modelType: string;
  readonly vocabSize: number;
  /** Positions the model was made for. */
  readonly maxPositions: number;
  /** Parameters in all, tied ones once. */
  readonly numParameters: number;
  /** Lines a user should read: defaults taken, options ignored. */
  readonly remarks: readonly string[];
  /** Throws, naming file and tensor, unless `source` holds exactly what this model needs. */
  checkWeights(source: TensorSource): void;
  /** Bytes of prepared weights at this dtype, before anything is loaded. */
  weightBytes(dtype: Dtype): number;
  cacheGroups(options: CacheOptions): readonly CacheGroupDeclaration[];
  cacheLayout(groups: readonly CacheGroupDeclaration[], options: CacheOptions): CacheLayout;
  build(context: BuildContext): BuiltModel;
}

export type { RequiredTensor };
