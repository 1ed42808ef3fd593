/** Log-probabilities of a prompt's own tokens: the hidden row at position p predicts the token at p + 1. */
import type { Address, Device } from "../../ffi/device";
import type { BuiltModel } from "../models/model";
import type { ForwardBatch, ForwardRow } from "../scheduler/plan";
import { concatenateLogprobs, type LogprobReader } from "./logprob-reader";
import type { LogprobRows } from "./logprob-rows";
import type { SamplingLookup } from "./request-sampling";

export class PromptLogprobs {
  readonly #device: Device;
  readonly #model: BuiltModel;
  readonly #reader: LogprobReader;
  readonly #lookup: SamplingLookup;
  readonly #maxRows: number;
  /** int32 [maxRows] on the device: hidden rows of one slice. */
  readonly #rowIndices: Address;

  constructor(
    device: Device,
    model: BuiltModel,
    reader: LogprobReader,
    lookup: SamplingLookup,
    maxRows: number,
  ) {
    this.#device = device;
    this.#model = model;
    this.#reader = reader;
    this.#lookup = lookup;
    this.#maxRows = maxRows;
    this.#rowIndices = device.allocate(maxRows * 4, "prompt rows");
  }

  /**
   * Reads those that the step's prefill rows ask for, after
   * its forward; waits for the device where there are some.
   */
  read(batch: ForwardBatch, out: Map<number, LogprobRows>): void {
    let hiddenRow = 0;
    for (let index = 0; index < batch.numPrefills; index++) {
      const row = batch.rows[index] as ForwardRow;
      const sampling = this.#lookup(row.request);
      const firstHidden = hiddenRow + row.replay;
      hiddenRow += row.inputLength;
      if (sampling?.promptLogprobs === undefined) continue;
      const last = Math.min(row.begin + row.size, sampling.promptLength - 1);
      const parts: LogprobRows[] = [];
      for (let begin = row.begin + 1; begin <= last; begin += this.#maxRows) {
        const numRows = Math.min(this.#maxRows, last + 1 - begin);
        const slice = { firstRow: 0, numRows, begin, count: sampling.promptLogprobs };
        parts.push(this.#readSlice(row, firstHidden + begin - 1 - row.begin, slice));
      }
      const joined = concatenateLogprobs(parts);
      if (joined !== undefined) out.set(index, joined);
    }
  }

  #readSlice(row: ForwardRow, hiddenRow: number, slice: Parameters<LogprobReader["read"]>[0]): LogprobRows {
    const { begin, numRows } = slice;
    this.#device.upload(
      this.#rowIndices,
      Int32Array.from({ length: numRows }, (_, i) => hiddenRow + i),
    );
    this.#model.computeLogits(this.#rowIndices, numRows);
    this.#reader.compute(numRows);
    return this.#reader.read(slice, row.tokens.slice(begin, begin + numRows));
  }
}
