/** How many log-probabilities a request may ask for. */
import { maxWholeVocabularyLogprobs } from "../../limits";
import { invalidParam } from "../http/api-error";

/**
 * `count` alternatives a position: up to the server's limit and the vocabulary, or -1 for all where that is
 * allowed.
 */
export function checkLogprobCount(
  param: string,
  count: number | null | undefined,
  maxLogprobs: number,
  vocabSize: number,
): number | undefined {
  if (count === undefined || count === null) return undefined;
  const isUnlimited = maxLogprobs === -1;
  if (count === -1 && isUnlimited) return -1;
  const limit = isUnlimited ? vocabSize : Math.min(maxLogprobs, vocabSize);
  if (count < 0 || count > limit) {
    throw invalidParam(
      param,
      `${param} must be between 0 and ${limit}${isUnlimited ? ", or -1 for all" : ""}.`,
    );
  }
  return count;
}

/** Positions at which the whole vocabulary is wanted; each costs as many numbers as there are tokens. */
export interface LogprobVolume {
  readonly logprobs: number | undefined;
  readonly promptLogprobs: number | undefined;
  readonly promptTokens: number;
  /** Generated tokens at most, of all choices together. */
  readonly generatedTokens: number;
  readonly vocabSize: number;
}

/** Refuses an answer that would not fit in memory. */
export function checkLogprobVolume(volume: LogprobVolume): void {
  const { logprobs, promptLogprobs, promptTokens, generatedTokens, vocabSize } = volume;
  const promptValues = promptLogprobs === -1 ? promptTokens * vocabSize : 0;
  const values = promptValues + (logprobs === -1 ? generatedTokens * vocabSize : 0);
  if (values <= maxWholeVocabularyLogprobs) return;
  throw invalidParam(
    promptValues > maxWholeVocabularyLogprobs ? "prompt_logprobs" : "max_tokens",
    `The whole vocabulary at every position would be ${values} numbers; ` +
      `${maxWholeVocabularyLogprobs} are allowed.`,
  );
}
