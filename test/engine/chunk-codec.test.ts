/** Chunks as integers: what is packed comes out equal. */
import { describe, expect, test } from "bun:test";
import { absent, ChunkPacker, unpackChunks } from "../../src/engine/chunk-codec";
import type { FinishReason, TokenChunk } from "../../src/engine/protocol";
import { Random } from "../support/random";

function roundTrip(chunks: readonly TokenChunk[]): TokenChunk[] {
  const packer = new ChunkPacker();
  for (const { id, choice, tokens, finish, stopTokenId = absent, cachedTokens = absent } of chunks)
    packer.add(id, choice, tokens[0] ?? absent, finish, stopTokenId, cachedTokens);
  const unpacked: TokenChunk[] = [];
  unpackChunks(packer.take(), (chunk) => unpacked.push(chunk));
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
    expect(roundTrip(chunks)).toEqual(chunks);
    expect(roundTrip([])).toEqual([]);
  });

  test("hands out arrays that later chunks do not change", () => {
    const packer = new ChunkPacker();
    packer.add(1, 0, 5, undefined, absent, absent);
    const first = packer.take();
    expect(packer.isEmpty).toBe(true);
    packer.add(2, 0, 6, "length", absent, absent);
    expect(first[0]).toBe(1);
    expect(packer.take()[0]).toBe(2);
    expect(packer.take()).toHaveLength(0);
  });
});
