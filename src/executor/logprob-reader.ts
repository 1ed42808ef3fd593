/**
 * Turns rows of logits into log-probability rows on the host: the best few of each, or the whole vocabulary.
 */
import { type Address, type Device, dtypeBytes, type Op } from "../../ffi/device";
import type { Tensor } from "../layers/tensor";
import type { LogprobRows } from "./logprob-rows";

/** Of consecutive rows of one computed batch. */
export interface LogprobRequest {
  readonly firstRow: number;
  readonly numRows: number;
  /** Position of the token that the first row speaks about. */
  readonly begin: number;
  /** Alternatives a row; -1 = the whole vocabulary. */
  readonly count: number;
}

export class LogprobReader {
  /** float32 [maxRows, vocab]. */
  readonly #logprobs: Address;
  readonly #device: Device;
  readonly #vocabSize: number;
  readonly #maxCount: number;
  readonly #logSoftmax: Op<"logSoftmax">;
  readonly #top: Op<"topLogprobs">;
  readonly #values: Address;
  readonly #ids: Address;
  readonly #chosen: Address;
  readonly #chosenValues: Address;
  readonly #chosenRanks: Address;

  constructor(device: Device, logits: Tensor, maxRows: number, maxCount: number) {
    const vocabSize = logits.columns;
    this.#device = device;
    this.#vocabSize = vocabSize;
    this.#maxCount = maxCount;
    this.#logprobs = device.allocate(maxRows * vocabSize * dtypeBytes.float32, "log-probabilities");
    const perRow = (extent: number) => device.allocate(maxRows * extent * 4, "log-probability results");
    this.#values = perRow(Math.max(1, maxCount));
    this.#ids = perRow(Math.max(1, maxCount));
    this.#chosen = perRow(1);
    this.#chosenValues = perRow(1);
    this.#chosenRanks = perRow(1);
    this.#logSoftmax = device.op("logSoftmax", {
      logits: logits.address,
      out: this.#logprobs,
      logitsStride: logits.stride,
      outStride: vocabSize,
      columns: vocabSize,
    });
    this.#top = device.op("topLogprobs", {
      logprobs: this.#logprobs,
      chosen: this.#chosen,
      ids: this.#ids,
      values: this.#values,
      chosenValues: this.#chosenValues,
      chosenRanks: this.#chosenRanks,
      logprobsStride: vocabSize,
      columns: vocabSize,
    });
  }

  /** Normalises the first `rows` rows of logits; before the sampler changes them. */
  compute(rows: number): void {
    this.#logSoftmax.set("rows", rows).launch();
  }

  /**
   * Reads rows that compute() made; `chosen` holds the token that stands at each row. Waits for the device.
   */
  read(request: LogprobRequest, chosen: Int32Array): LogprobRows {
    const { firstRow, numRows, begin, count } = request;
    const isWhole = count < 0 || count > this.#maxCount;
    const k = isWhole ? 0 : count;
    const rowBytes = this.#vocabSize * dtypeBytes.float32;
    this.#device.upload(this.#chosen, chosen);
    this.#top
      .set("logprobs", this.#logprobs + firstRow * rowBytes)
      .set("rows", numRows)
      .set("k", k)
      .launch();
    const values = new Float32Array(numRows * (isWhole ? this.#vocabSize : k));
    const ids = new Int32Array(isWhole ? 0 : numRows * k);
    const chosenValues = new Float32Array(numRows);
    const chosenRanks = new Int32Array(numRows);
    this.#device.download(values, isWhole ? this.#logprobs + firstRow * rowBytes : this.#values);
    this.#device.download(ids, this.#ids);
    this.#device.download(chosenValues, this.#chosenValues);
    this.#device.download(chosenRanks, this.#chosenRanks);
    const rows = {
      begin,
      numRows,
      count: isWhole ? this.#vocabSize : k,
      ids,
      values,
      chosenValues,
      chosenRanks,
    };
    return isWhole && count >= 0 ? selectBest(rows, Math.min(count, this.#vocabSize)) : rows;
  }
}

/** Rows of the whole vocabulary cut to their `count` best, descending, ties to the lower id. */
function selectBest(rows: LogprobRows, count: number): LogprobRows {
  const ids = new Int32Array(rows.numRows * count);
  const values = new Float32Array(rows.numRows * count);
  const order = Int32Array.from({ length: rows.count }, (_, id) => id);
  for (let row = 0; row < rows.numRows; row++) {
    const all = rows.values.subarray(row * rows.count, (row + 1) * rows.count);
    const best = order
      .toSorted((a, b) => (all[b] as number) - (all[a] as number) || a - b)
      .subarray(0, count);
    ids.set(best, row * count);
    best.forEach((id, i) => {
      values[row * count + i] = all[id] as number;
    });
  }
  return { ...rows, count, ids, values };
}

/** Joins rows of consecutive positions. */
export function concatenateLogprobs(parts: readonly LogprobRows[]): LogprobRows | undefined {
  const first = parts[0];
  if (first === undefined || parts.length === 1) return first;
  const joinInts = (pick: (part: LogprobRows) => Int32Array) =>
    Int32Array.from(parts.flatMap((part) => [...pick(part)]));
  const joinFloats = (pick: (part: LogprobRows) => Float32Array) => {
    const joined = new Float32Array(parts.reduce((sum, part) => sum + pick(part).length, 0));
    let offset = 0;
    for (const part of parts) {
      joined.set(pick(part), offset);
      offset += pick(part).length;
    }
    return joined;
  };
  return {
    begin: first.begin,
    numRows: parts.reduce((sum, { numRows }) => sum + numRows, 0),
    count: first.count,
    ids: joinInts(({ ids }) => ids),
    values: joinFloats(({ values }) => values),
    chosenValues: joinFloats(({ chosenValues }) => chosenValues),
    chosenRanks: joinInts(({ chosenRanks }) => chosenRanks),
  };
}
