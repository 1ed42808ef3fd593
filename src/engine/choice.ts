/**
 * One choice of one request while the engine works on it:
 * what it wants, how far it is, and the rules that end it.
 */
import type { RequestSampling } from "../executor/request-sampling";
import type { EngineRequest, FinishReason } from "./protocol";

export class Choice {
  readonly request: EngineRequest;
  readonly index: number;
  readonly sampling: RequestSampling;
  /** The scheduler's handle; set when it is submitted. */
  handle = -1;
  numGenerated = 0;
  /** False until the first news of it went out. */
  hasReported = false;
  readonly #stopIds: ReadonlySet<number>;

  constructor(
    request: EngineRequest,
    index: number,
    endTokens: readonly number[],
    seed: { readonly low: number; readonly high: number },
  ) {
    this.request = request;
    this.index = index;
    const { stop } = request;
    this.#stopIds = new Set([...(stop.ignoreEos ? [] : endTokens), ...stop.stopTokenIds]);
    this.sampling = {
      options: request.sampling,
      seedLow: seed.low,
      seedHigh: seed.high,
      choice: index,
      promptLength: request.tokens.length,
      suppressedIds: [...this.#stopIds],
      minTokens: stop.minTokens,
      logprobs: request.logprobs,
      promptLogprobs: index === 0 ? request.promptLogprobs : undefined,
    };
  }

  /** Counts a sampled token and tells whether it is the last one. */
  take(token: number): FinishReason | undefined {
    this.numGenerated++;
    if (this.#stopIds.has(token)) return "stop";
    return this.numGenerated >= this.request.stop.maxTokens ? "length" : undefined;
  }
}
