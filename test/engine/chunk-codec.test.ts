/** Chunks as integers: what is packed comes out equal, and what is more than integers is not packed. */
import { describe, expect, test } from "bun:test";
import { isPackable, packChunks, unpackChunks } from "../../src/engine/chunk-codec";
import type { FinishReason, TokenChunk } from "../../src/engine/protocol";
import { Random } from "../support/random";

function roundTrip(chunks: readonly TokenChunk[]): TokenChunk[] {
  const unpacked: TokenChunk[] = [];
  unpackChunks(packChunks(chunks), (chunk) => unpacked.push(chunk));
  return unpacked;
}

describe("packing", () => {
  test("keeps order and every field, present or absent, at either end of its range", () => {
    const random = new Random(2);
    const reasons: (FinishReason | undefined)[] = [undefined, "stop", "length", "abort", "error"];
    const maybe = () => (random.isHeads() ? random.pick([0, 1, 151_935, 2 ** 31 - 1]) : undefined);
    const chunks = Array.from({ length: 500 }, (_, i): TokenChunk => {
      const [token, finish, stopTokenId, cachedTokens] = [maybe(), random.pick(reasons), maybe(), maybe()];
      return {
        id: i,
        choice: random.integer(0, 127),
        tokens: token === undefined ? new Int32Array() : Int32Array.of(token),
        ...(finish === undefined ? {} : { finish }),
        ...(stopTokenId === undefined ? {} : { stopTokenId }),
        ...(cachedTokens === undefined ? {} : { cachedTokens }),
      };
    });
    expect(chunks.every(isPackable)).toBe(true);
    expect(roundTrip(chunks)).toEqual(chunks);
    expect(roundTrip([])).toEqual([]);
  });

  test("is refused to whatever is more than integers", () => {
    const plain: TokenChunk = { id: 1, choice: 0, tokens: Int32Array.of(5) };
    const rows = {
      begin: 0,
      numRows: 0,
      count: 0,
      ids: new Int32Array(),
      values: new Float32Array(),
      chosenValues: new Float32Array(),
      chosenRanks: new Int32Array(),
    };
    expect(isPackable(plain)).toBe(true);
    for (const more of [
      { logprobs: rows },
      { promptLogprobs: rows },
      { error: "" },
      { tokens: Int32Array.of(1, 2) },
    ]) {
      expect(isPackable({ ...plain, ...more })).toBe(false);
    }
  });
});
