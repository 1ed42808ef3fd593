/**
 * The gated feed-forward of one layer: down(silu(gate x) · up
 * x), added to the residual stream (Shazeer, arXiv 2002.05202).
 */
import { type Address, dtypes, type Op } from "../../ffi/device";
import type { Weight } from "../weights/weight-loader";
import type { BuildContext } from "./build-context";
import { Linear } from "./linear";
import { dtypeNumber, type Tensor } from "./tensor";

export interface GatedMlpOptions {
  readonly input: Tensor;
  /** Residual stream; gets the result added. */
  readonly stream: Tensor;
  /** Gate rows, then up rows. */
  readonly gateUp: Weight;
  readonly gateUpBias?: Address | undefined;
  readonly down: Weight;
  readonly downBias?: Address | undefined;
}

export class GatedMlp {
  readonly #gated: Op<"gatedLinear">;
  readonly #down: Linear;

  constructor(context: BuildContext, options: GatedMlpOptions) {
    const inner = options.down.columns;
    const gateUp = context.buffers.tensor("gateUp", 2 * inner);
    const activated = context.buffers.tensor("activated", inner);
    const { input, stream } = options;
    this.#gated = context.device.op("gatedLinear", {
      x: input.address,
      weight: options.gateUp.address,
      bias: options.gateUpBias ?? 0,
      gateUp: gateUp.address,
      out: activated.address,
      xStride: input.stride,
      gateUpStride: gateUp.stride,
      outStride: activated.stride,
      inColumns: options.gateUp.columns,
      columns: inner,
      dtype: dtypeNumber(input),
      weightDtype: dtypes[options.gateUp.dtype],
    });
    this.#down = new Linear(context, {
      input: activated,
      output: stream,
      weight: options.down,
      bias: options.downBias,
      residual: stream,
    });
  }

  run(rows: number): void {
    this.#gated.set("rows", rows).launch();
    this.#down.run(rows);
  }
}
