/**
 * Packs the plain chunks of a step into one integer array,
 * which crosses threads far cheaper than an object each.
 */
import type { FinishReason, TokenChunk } from "./protocol";

const finishReasons: readonly (FinishReason | undefined)[] = [undefined, "stop", "length", "abort", "error"];
const numFields = 6;
const noTokens = new Int32Array();

/** True when a chunk is integers alone. */
export function isPackable(chunk: TokenChunk): boolean {
  return (
    chunk.logprobs === undefined &&
    chunk.promptLogprobs === undefined &&
    chunk.error === undefined &&
    chunk.tokens.length <= 1
  );
}

/** Six integers a chunk: id, choice, token, finish, end token, cached tokens; -1 = absent. */
export function packChunks(chunks: readonly TokenChunk[]): Int32Array {
  const packed = new Int32Array(chunks.length * numFields);
  let at = 0;
  for (const chunk of chunks) {
    packed[at++] = chunk.id;
    packed[at++] = chunk.choice;
    packed[at++] = chunk.tokens[0] ?? -1;
    packed[at++] = finishReasons.indexOf(chunk.finish);
    packed[at++] = chunk.stopTokenId ?? -1;
    packed[at++] = chunk.cachedTokens ?? -1;
  }
  return packed;
}

/** Calls back with each packed chunk, in order. */
export function unpackChunks(packed: Int32Array, visit: (chunk: TokenChunk) => void): void {
  for (let at = 0; at < packed.length; at += numFields) {
    const [id, choice, token, finish, stopTokenId, cachedTokens] = packed.subarray(
      at,
      at + numFields,
    ) as unknown as [number, number, number, number, number, number];
    const reason = finishReasons[finish];
    visit({
      id,
      choice,
      tokens: token < 0 ? noTokens : Int32Array.of(token),
      ...(reason === undefined ? {} : { finish: reason }),
      ...(stopTokenId < 0 ? {} : { stopTokenId }),
      ...(cachedTokens < 0 ? {} : { cachedTokens }),
    });
  }
}
