/** How a request wants its tokens chosen, as it crosses from the server to the sampler. */

/** How the tokens of one request are chosen. Values are validated by the server before they get here. */
export interface SamplingOptions {
  /** 0 takes the most likely token. */
  readonly temperature: number;
  /** 1 = off. */
  readonly topP: number;
  /** 0 = off. */
  readonly topK: number;
  /** 0 = off. */
  readonly minP: number;
  /** 1 = off; over prompt and generated tokens. */
  readonly repetitionPenalty: number;
  /** 0 = off; over generated tokens. */
  readonly presencePenalty: number;
  readonly frequencyPenalty: number;
  /** Two halves of the seed, unsigned 32-bit each; absent = the engine draws one. */
  readonly seed?: { readonly low: number; readonly high: number };
  readonly logitBias?: readonly { readonly tokenId: number; readonly bias: number }[];
}
