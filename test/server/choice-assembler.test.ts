/** One choice's text, end and token count, whatever steps its tokens come in. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { FinishReason, TokenChunk } from "../../src/engine/protocol";
import { ChoiceAssembler, type ChoiceOptions } from "../../src/server/generation/choice-assembler";
import { byteLevel } from "../tokenizer/tokenizer-builder";

const tokenizer = byteLevel();
const end = 257;
const [a, b, c] = [64, 65, 66];

const noStops: ChoiceOptions = {
  stopStrings: [],
  includeStopString: false,
  minTokens: 0,
  skipSpecialTokens: true,
};

function assemble(options: Partial<ChoiceOptions> = {}) {
  return new ChoiceAssembler(tokenizer.vocabulary, new Set([end]), { ...noStops, ...options });
}

function chunk(tokens: readonly number[], finish?: FinishReason, stopTokenId?: number): TokenChunk {
  return {
    id: 1,
    choice: 0,
    tokens: Int32Array.from(tokens),
    ...(finish === undefined ? {} : { finish }),
    ...(stopTokenId === undefined ? {} : { stopTokenId }),
  };
}

describe("an ending choice", () => {
  test("by an end token counts it, shows no text of it and gives no stop reason", () => {
    const choice = assemble({ skipSpecialTokens: false });
    const update = choice.push(chunk([a, b, end], "stop", end));
    expect(update).toMatchObject({ text: "ab", finish: { reason: "stop", stopReason: null } });
    expect(choice.numTokens).toBe(3);
  });

  test("by a stop token id names it and leaves its text out unless that is asked for", () => {
    expect(assemble().push(chunk([a, b], "stop", b))).toMatchObject({ text: "a", finish: { stopReason: b } });
    expect(assemble({ includeStopString: true }).push(chunk([a, b], "stop", b))).toMatchObject({
      text: "ab",
    });
  });

  test("by a stop string in the second of four tokens drops the rest", () => {
    const choice = assemble({ stopStrings: ["ab"] });
    const update = choice.push(chunk([a, b, c, a], "length"));
    expect(update).toMatchObject({
      text: "",
      finish: { reason: "stop", stopReason: "ab", stoppedByString: true },
    });
    expect([...(update?.tokens ?? [])]).toEqual([a, b]);
    expect(choice.numTokens).toBe(2);
  });

  test("by its limit gives out what was held back", () => {
    const choice = assemble({ stopStrings: ["abc"] });
    expect(choice.push(chunk([a, b]))).toMatchObject({ text: "" });
    expect(choice.push(chunk([], "length"))).toMatchObject({ text: "ab", finish: { reason: "length" } });
  });

  test("in the middle of a character marks it once", async () => {
    const choice = assemble();
    const bytes = [...(await tokenizer.encodePrompt("🧪", false))];
    expect(choice.push(chunk(bytes.slice(0, 3), "length"))).toMatchObject({ text: "\ufffd" });
  });

  test("has no more news afterwards", () => {
    const choice = assemble({ stopStrings: ["a"] });
    choice.push(chunk([a]));
    expect(choice.isFinished).toBe(true);
    expect(choice.push(chunk([b, c]))).toBeUndefined();
    expect(choice.numTokens).toBe(1);
  });
});

describe("min_tokens", () => {
  test("lets a stop string pass until as many tokens are there", () => {
    const choice = assemble({ stopStrings: ["b"], minTokens: 3 });
    expect(choice.push(chunk([a, b, a, b, a]))).toMatchObject({ text: "aba", finish: { stopReason: "b" } });
    expect(choice.numTokens).toBe(4);
  });

  test("lets a stop string end exactly at it", () => {
    const choice = assemble({ stopStrings: ["b"], minTokens: 2 });
    expect(choice.push(chunk([a, b, a]))).toMatchObject({ text: "a" });
    expect(choice.numTokens).toBe(2);
  });
});

describe("any tokens in any steps", () => {
  test("give the text, the end and the count that they give all at once", () => {
    const ids = fc.array(
      fc.integer({ min: 0, max: 255 }).map((id) => (id < 128 ? (id % 3) + 64 : id)),
      { maxLength: 20 },
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 20, maxLength: 20 });
    const stops = fc.array(fc.constantFrom("ab", "ba", "cc", "abc"), { maxLength: 2 });
    fc.assert(
      fc.property(
        ids,
        sizes,
        stops,
        fc.integer({ min: 0, max: 6 }),
        (tokens, stepSizes, stopStrings, minTokens) => {
          const whole = assemble({ stopStrings, minTokens });
          const wholeUpdate = whole.push(chunk(tokens, "length"));
          const stepped = assemble({ stopStrings, minTokens });
          let text = "";
          let last: ReturnType<ChoiceAssembler["push"]>;
          for (let at = 0, step = 0; at < tokens.length && !stepped.isFinished; at += stepSizes[step++]) {
            last = stepped.push(chunk(tokens.slice(at, at + stepSizes[step])));
            text += last?.text ?? "";
          }
          if (!stepped.isFinished) {
            last = stepped.push(chunk([], "length"));
            text += last?.text ?? "";
          }
          expect(text).toBe(wholeUpdate?.text ?? "");
          expect(last?.finish).toEqual(wholeUpdate?.finish as never);
          expect(stepped.numTokens).toBe(whole.numTokens);
        },
      ),
      { numRuns: 1000 },
    );
  });
});
