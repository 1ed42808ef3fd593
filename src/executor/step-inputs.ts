/**
 * The integers that one step feeds to the device: built in one host array, uploaded as far as they are used,
 * at addresses that never change. Prefill rows and sequences come first, then one row a decode sequence.
 */
import type { Address, Device } from "../../ffi/device";
import type { StepBounds, StepOperands, StepShape } from "../layers/build-context";
import type { ForwardBatch, ForwardRow } from "../scheduler/plan";

const int32Bytes = 4;

/** Rows that yield a token, in row order. */
export interface SampledRow {
  readonly row: ForwardRow;
  /** Index of the row in the batch. */
  readonly index: number;
}

export class StepInputs {
  readonly operands: StepOperands;
  /** Device int32 lists over the sampled rows: hidden row, slot, position of the sampled token. */
  readonly sampleRows: Address;
  readonly sampleSlots: Address;
  readonly samplePositions: Address;
  /** The sampled rows of the step built last. */
  readonly sampled: SampledRow[] = [];
  readonly #device: Device;
  readonly #base: Address;
  readonly #host: Int32Array;
  readonly #offsets: Readonly<Record<string, number>>;

  constructor(device: Device, bounds: StepBounds) {
    this.#device = device;
    const segments: readonly (readonly [string, number])[] = [
      ["prefillTableRows", bounds.maxSeqs],
      ["prefillQueryStarts", bounds.maxSeqs + 1],
      ["prefillSeqLens", bounds.maxSeqs],
      ["decodeTableRows", bounds.maxSeqs],
      ["decodeSeqLens", bounds.maxSeqs],
      ["sampleRows", bounds.maxSeqs],
      ["sampleSlots", bounds.maxSeqs],
      ["samplePositions", bounds.maxSeqs],
      // The long ones last, so that the rest travels with the first of them in one copy.
      ["tokenIds", bounds.maxRows],
      ["positions", bounds.maxRows],
    ];
    const offsets: Record<string, number> = {};
    let length = 0;
    for (const [name, extent] of segments) {
      offsets[name] = length;
      length += Math.ceil(extent / 64) * 64;
    }
    this.#offsets = offsets;
    this.#host = new Int32Array(length);
    this.#base = device.allocate(length * int32Bytes, "step inputs");
    const at = (name: string) => this.#base + (offsets[name] as number) * int32Bytes;
    this.operands = {
      tokenIds: at("tokenIds"),
      positions: at("positions"),
      prefillTableRows: at("prefillTableRows"),
      prefillQueryStarts: at("prefillQueryStarts"),
      prefillSeqLens: at("prefillSeqLens"),
      decodeTableRows: at("decodeTableRows"),
      decodeSeqLens: at("decodeSeqLens"),
    };
    this.sampleRows = at("sampleRows");
    this.sampleSlots = at("sampleSlots");
    this.samplePositions = at("samplePositions");
  }

  /**
   * Writes and enqueues the inputs of a batch. A decode row without an id takes what the sampler left for its
   * slot. A batch of decode rows is filled up to `padded` rows that compute nothing and write nowhere.
   */
  upload(batch: ForwardBatch, padded = 0): StepShape {
    this.sampled.length = 0;
    const prefill = this.#writePrefills(batch);
    const decode = this.#writeDecodes(batch, prefill.rows);
    if (padded > decode.seqs) this.#writePadding(decode.seqs, padded);
    const rows = prefill.rows + decode.seqs;
    this.#upload(Math.max(rows, padded));
    return {
      rows,
      prefillSeqs: batch.numPrefills,
      prefillRows: prefill.rows,
      maxQueryTokens: prefill.maxQueryTokens,
      decodeSeqs: decode.seqs,
      maxSeqLen: Math.max(prefill.maxSeqLen, decode.maxSeqLen),
    };
  }

  #upload(rows: number): void {
    const positions = this.#at("positions");
    this.#device.upload(this.#base, this.#host.subarray(0, this.#at("tokenIds") + rows));
    this.#device.upload(
      this.#base + positions * int32Bytes,
      this.#host.subarray(positions, positions + rows),
    );
  }

  #at(name: string): number {
    return this.#offsets[name] as number;
  }

  #writePrefills(batch: ForwardBatch) {
    const host = this.#host;
    const starts = this.#at("prefillQueryStarts");
    const tokenIds = this.#at("tokenIds");
    const positions = this.#at("positions");
    let rows = 0;
    let maxQueryTokens = 0;
    let maxSeqLen = 0;
    host[starts] = 0;
    for (let i = 0; i < batch.numPrefills; i++) {
      const row = batch.rows[i] as ForwardRow;
      const begin = row.begin - row.replay;
      const end = row.begin + row.size;
      host.set(row.tokens.subarray(begin, begin + row.inputLength), tokenIds + rows);
      for (let k = 0; k < row.inputLength; k++) host[positions + rows + k] = begin + k;
      rows += row.inputLength;
      host[starts + i + 1] = rows;
      host[this.#at("prefillTableRows") + i] = row.slot;
      host[this.#at("prefillSeqLens") + i] = end;
      maxQueryTokens = Math.max(maxQueryTokens, row.inputLength);
      maxSeqLen = Math.max(maxSeqLen, end);
      if (row.completesPrompt) this.#sample(row, i, rows - 1, end);
    }
    return { rows, maxQueryTokens, maxSeqLen };
  }

  #writeDecodes(batch: ForwardBatch, firstRow: number) {
    const host = this.#host;
    let maxSeqLen = 0;
    let seqs = 0;
    for (let i = batch.numPrefills; i < batch.rows.length; i++) {
      const row = batch.rows[i] as ForwardRow;
      const length = row.begin + 1;
      host[this.#at("tokenIds") + firstRow + seqs] =
        row.decodeInputId >= 0 ? row.decodeInputId : -row.slot - 1;
      host[this.#at("positions") + firstRow + seqs] = row.begin;
      host[this.#at("decodeTableRows") + seqs] = row.slot;
      host[this.#at("decodeSeqLens") + seqs] = length;
      maxSeqLen = Math.max(maxSeqLen, length);
      this.#sample(row, i, firstRow + seqs, length);
      seqs++;
    }
    return { seqs, maxSeqLen };
  }

  #writePadding(begin: number, end: number): void {
    this.#fill("tokenIds", 0, begin, end);
    this.#fill("positions", 0, begin, end);
    this.#fill("decodeTableRows", 0, begin, end);
    this.#fill("decodeSeqLens", 0, begin, end);
    this.#fill("sampleRows", -1, begin, end);
    this.#fill("sampleSlots", -1, begin, end);
  }

  #fill(name: string, value: number, begin: number, end: number): void {
    this.#host.fill(value, this.#at(name) + begin, this.#at(name) + end);
  }

  #sample(row: ForwardRow, index: number, hiddenRow: number, position: number): void {
    const at = this.sampled.length;
    this.#host[this.#at("sampleRows") + at] = hiddenRow;
    this.#host[this.#at("sampleSlots") + at] = row.slot;
    this.#host[this.#at("samplePositions") + at] = position;
    this.sampled.push({ row, index });
  }
}
