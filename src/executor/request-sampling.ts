/**
 * What the executor must know of a request beyond its plan
 * row: how it samples and which log-probabilities it wants.
 */
import type { SamplingOptions } from "./sampling-options";

export interface RequestSampling {
  readonly options: SamplingOptions;
  readonly seedLow: number;
  readonly seedHigh: number;
  /** Index among the choices of one request. */
  readonly choice: number;
  /** Tokens of the prompt as submitted; what follows in a re-fed window was generated. */
  readonly promptLength: number;
  /** Ids that may not be sampled before `minTokens` were generated. */
  readonly suppressedIds: readonly number[];
  readonly minTokens: number;
  /** Alternatives a generated token: absent = none, -1 = the whole vocabulary. */
  readonly logprobs?: number | undefined;
  /** The same for the prompt's own tokens. */
  readonly promptLogprobs?: number | undefined;
}

/** Looks a request up by its scheduler handle; undefined once it has ended. */
export type SamplingLookup = (request: number) => RequestSampling | undefined;
