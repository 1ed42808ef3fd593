/** A matrix product with optional bias and residual: out = x · weightᵀ (+ bias) (+ residual). */
import { type Address, dtypes, type Op } from "../../ffi/device";
import type { Weight } from "../weights/weight-loader";
import type { BuildContext } from "./build-context";
import { dtypeNumber, type Tensor } from "./tensor";

export interface LinearOptions {
  readonly input: Tensor;
  readonly output: Tensor;
  readonly weight: Weight;
  /** float32 [weight.rows]. */
  readonly bias?: Address | undefined;
  /** Added to the product; may be the output itself. */
  readonly residual?: Tensor | undefined;
}

export class Linear {
  readonly #op: Op<"linear">;

  constructor(context: BuildContext, { input, output, weight, bias, residual }: LinearOptions) {
    this.#op = context.device.op("linear", {
      x: input.address,
      weight: weight.address,
      bias: bias ?? 0,
      residual: residual?.address ?? 0,
      out: output.address,
      xStride: input.stride,
      residualStride: residual?.stride ?? 0,
      outStride: output.stride,
      inColumns: weight.columns,
      outColumns: weight.rows,
      dtype: dtypeNumber(input),
      weightDtype: dtypes[weight.dtype],
      outDtype: dtypeNumber(output),
    });
  }

  run(rows: number): void {
    this.#op.set("rows", rows).launch();
  }
}
