/**
 * A mixture of gated experts: each row goes through the experts
 * its router ranks highest, weighted and summed in rank order.
 */
import { dtypes, type Op } from "../../ffi/device";
import type { Weight } from "../weights/weight-loader";
import type { BuildContext } from "./build-context";
import { Linear } from "./linear";
import { dtypeNumber, type Tensor } from "./tensor";

/** How router logits become weights; numbers of the C ABI. */
export const routings = { softmaxTopK: 0, softmaxTopKNormalised: 1, topKSoftmax: 2 } as const;

export interface MixtureOptions {
  readonly input: Tensor;
  /** Residual stream; gets the result added. */
  readonly stream: Tensor;
  readonly router: Weight;
  /** Expert e owns rows [e * 2 * inner, …): gate, then up. */
  readonly gateUp: Weight;
  /** Expert e owns rows [e * hidden, …). */
  readonly down: Weight;
  readonly numExperts: number;
  readonly expertsPerToken: number;
  readonly routing: keyof typeof routings;
}

export class MixtureOfExperts {
  readonly #router: Linear;
  readonly #route: Op<"moeRoute">;
  readonly #experts: Op<"moeExperts">;

  constructor(context: BuildContext, options: MixtureOptions) {
    const { device, buffers, bounds } = context;
    const { input, stream, numExperts, expertsPerToken } = options;
    const logits = buffers.tensor("routerLogits", numExperts, { dtype: "float32" });
    const ids = buffers.tensor("expertIds", expertsPerToken, { dtype: "int32" });
    const weights = buffers.tensor("expertWeights", expertsPerToken, { dtype: "float32" });
    this.#router = new Linear(context, { input, output: logits, weight: options.router });
    this.#route = device.op("moeRoute", {
      logits: logits.address,
      ids: ids.address,
      weights: weights.address,
      numExperts,
      topK: expertsPerToken,
      routing: routings[options.routing],
    });
    this.#experts = device.op("moeExperts", {
      x: input.address,
      gateUp: options.gateUp.address,
      down: options.down.address,
      ids: ids.address,
      weights: weights.address,
      residual: stream.address,
      out: stream.address,
      xStride: input.stride,
      residualStride: stream.stride,
      outStride: stream.stride,
      rows: bounds.maxRows,
      hidden: stream.columns,
      inner: options.down.columns,
      numExperts,
      topK: expertsPerToken,
      dtype: dtypeNumber(input),
      weightDtype: dtypes[options.gateUp.dtype],
    });
    const bytes = device.scratchBytes("moe", this.#experts.block);
    this.#experts.set("scratch", buffers.scratch("moe", bytes));
  }

  run(rows: number): void {
    this.#router.run(rows);
    this.#route.set("rows", rows).launch();
    this.#experts.set("rows", rows).launch();
  }
}
