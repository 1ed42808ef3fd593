/**
 * Where a model's tensors come from: files or a recipe. Sources
 * know names, shapes and bytes; models decide what is needed.
 */
import type { Dtype } from "../../ffi/device";

/** Element types a checkpoint may hold that matter to a model. */
export type TensorDtype = Extract<Dtype, "float32" | "bfloat16" | "float16" | "int32">;

export interface TensorInfo {
  readonly name: string;
  readonly shape: readonly number[];
  readonly dtype: string;
  /** File that holds it, or what makes it up; for messages. */
  readonly origin: string;
}

/** Bytes of one tensor in host memory, row-major. */
export interface MappedTensor {
  readonly kind: "mapped";
  readonly address: number;
  readonly dtype: TensorDtype;
}

/** A tensor whose values are a function of its name. */
export interface SyntheticTensor {
  readonly kind: "synthetic";
  /** Two words of SHA-256("seed/name"). */
  readonly a: number;
  readonly b: number;
  readonly scale: number;
  readonly offset: number;
}

export type TensorData = MappedTensor | SyntheticTensor;

export interface TensorSource extends Disposable {
  /** One line for logs: "2 files in …", "synthetic, seed …". */
  readonly description: string;
  /** Every tensor the source is known to hold; a source that can make up any tensor returns undefined. */
  list(): readonly TensorInfo[] | undefined;
  find(name: string): TensorInfo | undefined;
  /** Data of a tensor that was found. `shape` is what the model expects. */
  data(name: string, shape: readonly number[]): TensorData;
}
