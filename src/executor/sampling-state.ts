/**
 * Per-slot sampling state on the device: parameters, biases,
 * suppressed ids, penalty counts and each slot's last token.
 */
import { ArgumentBlock } from "../../ffi/argument-block";
import { samplingParamsBlock } from "../../ffi/blocks";
import type { Address, Device, Op } from "../../ffi/device";
import { assert } from "../assert";
import { maxLogitBiases, maxSuppressedIds } from "../limits";
import type { ForwardRow } from "../scheduler/plan";
import type { RequestSampling } from "./request-sampling";

export class SamplingState {
  readonly numSlots: number;
  readonly params: Address;
  readonly biasIds: Address;
  readonly biasValues: Address;
  readonly suppressedIds: Address;
  readonly counts: Address;
  /** int32 [numSlots]. */
  readonly lastTokens: Address;
  readonly #device: Device;
  readonly #block = new ArgumentBlock(samplingParamsBlock);
  readonly #idBuffer: Address;
  readonly #countTokens: Op<"countTokens">;

  constructor(device: Device, maxSeqs: number, vocabSize: number, maxTokensPerRequest: number) {
    this.#device = device;
    this.numSlots = maxSeqs + 1;
    this.params = device.allocate(this.numSlots * this.#block.bytes, "sampling parameters");
    this.biasIds = device.allocate(this.numSlots * maxLogitBiases * 4, "logit biases");
    this.biasValues = device.allocate(this.numSlots * maxLogitBiases * 4, "logit biases");
    this.suppressedIds = device.allocate(this.numSlots * maxSuppressedIds * 4, "suppressed ids");
    this.counts = device.allocate(this.numSlots * vocabSize * 4, "penalty counts");
    this.lastTokens = device.allocate(this.numSlots * 4, "last tokens");
    this.#idBuffer = device.allocate(maxTokensPerRequest * 4, "tokens to count");
    this.#countTokens = device.op("countTokens", {
      counts: this.counts,
      ids: this.#idBuffer,
      vocab: vocabSize,
      clear: 1,
    });
  }

  /** Sets a slot up for the request that starts in it with this row. */
  admit(row: ForwardRow, sampling: RequestSampling): void {
    const { options } = sampling;
    const usesCounts =
      options.repetitionPenalty !== 1 || options.presencePenalty !== 0 || options.frequencyPenalty !== 0;
    const biases = options.logitBias ?? [];
    const suppressed = sampling.minTokens > 0 ? sampling.suppressedIds : [];
    this.#block.setAll({
      temperature: options.temperature,
      topP: options.topP,
      minP: options.minP,
      topK: options.topK,
      repetitionPenalty: options.repetitionPenalty,
      presencePenalty: options.presencePenalty,
      frequencyPenalty: options.frequencyPenalty,
      seedLow: sampling.seedLow,
      seedHigh: sampling.seedHigh,
      choice: sampling.choice,
      numBiases: biases.length,
      numSuppressed: suppressed.length,
      suppressBelow: sampling.promptLength + sampling.minTokens,
      usesCounts: usesCounts ? 1 : 0,
    });
    const { bytes, pointer } = this.#block;
    this.#device.copy(this.params + row.slot * bytes, pointer, bytes, "hostToDevice");
    this.#uploadRow(
      this.biasIds,
      row.slot,
      maxLogitBiases,
      Int32Array.from(biases, ({ tokenId }) => tokenId),
    );
    this.#uploadRow(
      this.biasValues,
      row.slot,
      maxLogitBiases,
      Float32Array.from(biases, ({ bias }) => bias),
    );
    this.#uploadRow(this.suppressedIds, row.slot, maxSuppressedIds, Int32Array.from(suppressed));
    if (usesCounts) this.#count(row, sampling);
  }

  #uploadRow(table: Address, slot: number, capacity: number, values: Int32Array | Float32Array): void {
    assert(values.length <= capacity, `${values.length} sampling entries are too many for slot ${slot}`);
    this.#device.upload(table + slot * capacity * 4, values);
  }

  #count(row: ForwardRow, sampling: RequestSampling): void {
    this.#device.upload(this.#idBuffer, row.tokens.subarray(0, row.prefillLength));
    this.#countTokens
      .set("slot", row.slot)
      .set("numIds", row.prefillLength)
      .set("numPrompt", Math.min(sampling.promptLength, row.prefillLength))
      .launch();
  }
}
