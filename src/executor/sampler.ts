/**
 * Draws the tokens of a step's sampled rows and brings them
 * to the host, with log-probabilities where they are wanted.
 */
import type { Address, Device, Op } from "../../ffi/device";
import type { Tensor } from "../layers/tensor";
import { maxLogitBiases, maxSuppressedIds } from "../limits";
import type { LogprobReader } from "./logprob-reader";
import type { LogprobRows } from "./logprob-rows";
import type { SamplingLookup } from "./request-sampling";
import type { SamplingState } from "./sampling-state";
import type { SampledRow, StepInputs } from "./step-inputs";

export interface SamplerParts {
  readonly device: Device;
  readonly logits: Tensor;
  readonly state: SamplingState;
  readonly reader: LogprobReader;
  readonly inputs: StepInputs;
  readonly lookup: SamplingLookup;
  readonly maxRows: number;
}

export class Sampler {
  readonly #parts: SamplerParts;
  readonly #sample: Op<"sample">;
  /** int32 [maxRows] on the device. */
  readonly #drawn: Address;

  constructor(parts: SamplerParts) {
    const { device, logits, state, inputs, maxRows } = parts;
    this.#parts = parts;
    this.#drawn = device.allocate(maxRows * 4, "sampled tokens");
    this.#sample = device.op("sample", {
      logits: logits.address,
      slots: inputs.sampleSlots,
      positions: inputs.samplePositions,
      params: state.params,
      counts: state.counts,
      biasIds: state.biasIds,
      biasValues: state.biasValues,
      suppressedIds: state.suppressedIds,
      out: this.#drawn,
      lastTokens: state.lastTokens,
      logitsStride: logits.stride,
      rows: maxRows,
      vocab: logits.columns,
      numSlots: state.numSlots,
      biasCapacity: maxLogitBiases,
      suppressedCapacity: maxSuppressedIds,
    });
    const scratchBytes = device.scratchBytes("sample", this.#sample.block);
    if (scratchBytes > 0) this.#sample.set("scratch", device.allocate(scratchBytes, "sampler scratch"));
  }

  /**
   * Enqueues the draw of the step's sampled rows and the copy of their tokens
   * to `destination` (pinned host memory). Rows that want log-probabilities
   * get them in `logprobs` by row index, which waits for the device.
   */
  enqueue(destination: Address, logprobs: Map<number, LogprobRows>): void {
    const { device, reader, inputs, lookup } = this.#parts;
    const { sampled } = inputs;
    const rows = sampled.length;
    if (rows === 0) return;
    const wanting = sampled.some(({ row }) => lookup(row.request)?.logprobs !== undefined);
    if (wanting) reader.compute(rows);
    this.#sample.set("rows", rows).launch();
    device.copy(destination, this.#drawn, rows * 4, "deviceToHost");
    if (wanting) this.#readLogprobs(sampled, logprobs);
  }

  #readLogprobs(sampled: readonly SampledRow[], logprobs: Map<number, LogprobRows>): void {
    const { device, reader, lookup } = this.#parts;
    const drawn = new Int32Array(sampled.length);
    device.download(drawn, this.#drawn);
    sampled.forEach(({ row, index }, i) => {
      const count = lookup(row.request)?.logprobs;
      if (count === undefined || (drawn[i] as number) < 0) return;
      const request = { firstRow: i, numRows: 1, begin: row.begin + row.size, count };
      logprobs.set(index, reader.read(request, drawn.slice(i, i + 1)));
    });
  }
}
