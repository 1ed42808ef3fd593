/**
 * Root-mean-square norm of rows: out = x / sqrt(mean(x²) +
 * epsilon) · weight (Zhang and Sennrich, arXiv 1910.07467).
 */
import { type Address, dtypes, type Op } from "../../ffi/device";
import type { BuildContext } from "./build-context";
import { dtypeNumber, type Tensor } from "./tensor";

export interface RmsNormOptions {
  readonly input: Tensor;
  readonly output: Tensor;
  /** float32 [columns]. */
  readonly weight: Address;
  readonly epsilon: number;
}

export class RmsNorm {
  readonly #op: Op<"rmsNorm">;

  constructor(context: BuildContext, { input, output, weight, epsilon }: RmsNormOptions) {
    this.#op = context.device.op("rmsNorm", {
      x: input.address,
      weight,
      out: output.address,
      xStride: input.stride,
      outStride: output.stride,
      columns: input.columns,
      dtype: dtypeNumber(input),
      weightDtype: dtypes.float32,
      eps: epsilon,
    });
  }

  run(rows: number): void {
    this.#op.set("rows", rows).launch();
  }
}
