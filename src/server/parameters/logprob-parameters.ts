/** How many log-probabilities a request may ask for. */
import { invalidParam } from "../http/api-error";

/** `count` alternatives a position: up to the server's limit and the vocabulary, or -1 for all where that is allowed. */
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
