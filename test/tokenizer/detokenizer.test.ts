/**
 * Text from tokens as they come: whole characters only, and in the end exactly the text of all tokens at
 * once.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeTokens, IncrementalDetokenizer } from "../../src/tokenizer/detokenizer";
import type { ModelTokenizer } from "../../src/tokenizer/model-tokenizer";
import { byteFallback, byteIds, byteLevel } from "./tokenizer-builder";

const sample = "naïve 漢字 🧪🏽 क्षि ﷺ";
const inText = { skipSpecialTokens: true, atTextStart: false };

function deltas(tokenizer: ModelTokenizer, ids: readonly number[]): string[] {
  const detokenizer = new IncrementalDetokenizer(tokenizer.vocabulary, inText);
  return [...ids.map((id) => detokenizer.push(id)), detokenizer.flush()];
}

function hasLoneSurrogate(text: string): boolean {
  return !text.isWellFormed();
}

describe.each([
  ["byte-level", byteLevel(), (text: string) => text],
  ["byte-fallback", byteFallback(), (text: string) => ` ${text}`],
] as const)("streaming %s tokens", (_name, tokenizer, expected) => {
  test("never emits half a character and loses none", async () => {
    const ids = await byteIds(tokenizer, sample);
    const parts = deltas(tokenizer, ids);
    expect(parts.join("")).toBe(expected(sample));
    expect(parts.some((part) => part.includes("\ufffd") || hasLoneSurrogate(part))).toBe(false);
  });

  test("gives one replacement mark for a character that the limit cut", async () => {
    const ids = (await byteIds(tokenizer, "ab🧪")).slice(0, -1);
    expect(deltas(tokenizer, ids).join("")).toBe(expected("ab\ufffd"));
  });

  test("gives one replacement mark for an invalid byte in the middle", async () => {
    const [lead] = (await byteIds(tokenizer, "é")).slice(-2);
    const ids = [...(await byteIds(tokenizer, "a")), lead, ...(await byteIds(tokenizer, "漢")).slice(-3)];
    expect(deltas(tokenizer, ids).join("")).toBe(expected("a\ufffd漢"));
  });

  test("equals decoding at once, whatever the tokens are", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 256 }), { maxLength: 30 }), (ids) => {
        const bytes = Buffer.concat(
          ids
            .filter((id) => !tokenizer.vocabulary.entry(id).isSpecial)
            .map((id) => tokenizer.vocabulary.entry(id).bytes),
        );
        const parts = deltas(tokenizer, ids);
        expect(parts.join("")).toBe(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes));
        expect(parts.some(hasLoneSurrogate)).toBe(false);
      }),
      { numRuns: 500 },
    );
  });
});

describe("the bytes of tokens", () => {
  test("put together are the exact UTF-8 of the text", async () => {
    const tokenizer = byteLevel();
    const ids = await byteIds(tokenizer, sample);
    const bytes = Buffer.concat(ids.map((id) => tokenizer.vocabulary.entry(id).bytes));
    expect(bytes.equals(Buffer.from(sample))).toBe(true);
  });

  test("are none for an id that the vocabulary does not name", () => {
    expect(byteLevel().vocabulary.entry(5000).bytes).toHaveLength(0);
  });
});

describe("special tokens", () => {
  test("leave no text unless they are asked for", () => {
    const { vocabulary } = byteLevel();
    expect(decodeTokens(vocabulary, [256, 71, 72, 257], inText)).toBe("hi");
    expect(decodeTokens(vocabulary, [256, 71, 72, 257], { ...inText, skipSpecialTokens: false })).toBe(
      "<|im_start|>hi<|im_end|>",
    );
  });

  test("do not tear a character that they stand inside", async () => {
    const tokenizer = byteLevel();
    const [first, ...rest] = await byteIds(tokenizer, "漢");
    expect(decodeTokens(tokenizer.vocabulary, [first, 257, ...rest], inText)).toBe("漢");
  });
});

describe("the space that a vocabulary puts before words", () => {
  test("is dropped where a text begins and kept where it goes on", async () => {
    const tokenizer = byteFallback();
    const ids = await byteIds(tokenizer, "hi hi");
    expect(decodeTokens(tokenizer.vocabulary, ids, { skipSpecialTokens: true, atTextStart: true })).toBe(
      "hi hi",
    );
    expect(decodeTokens(tokenizer.vocabulary, ids, inText)).toBe(" hi hi");
  });
});
