/** The embedded model's tokenizer against vectors that the reference tokenizer gave for the same files. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { decodeTokens } from "../../src/tokenizer/detokenizer";
import type { JsonObject } from "../../src/tokenizer/json";
import { ModelTokenizer } from "../../src/tokenizer/model-tokenizer";
import { readTokenizerFiles } from "../../src/tokenizer/tokenizer-files";
import vectors from "../fixtures/demo/vectors.json";

const folder = `${import.meta.dir}/../../src/demo/model/`;

const tokenizer = new ModelTokenizer(
  readTokenizerFiles((name) => {
    try {
      return readFileSync(folder + name, "utf8");
    } catch {
      return undefined;
    }
  }),
);
const whole = { skipSpecialTokens: false, atTextStart: true };

describe("the demo model's tokenizer", () => {
  test("gives the reference ids for every text", async () => {
    expect(vectors.texts.length).toBeGreaterThan(40);
    for (const { text, ids } of vectors.texts) {
      expect({ text, ids: [...(await tokenizer.encodePrompt(text, false))] }).toEqual({ text, ids });
    }
  });

  test("gives every text back", () => {
    for (const { text, ids } of vectors.texts) {
      expect(decodeTokens(tokenizer.vocabulary, ids, whole)).toBe(text);
    }
  });

  test("renders conversations as the reference does", async () => {
    expect(vectors.chats.length).toBeGreaterThan(0);
    for (const { messages, text, ids } of vectors.chats) {
      const chat = { messages: messages as readonly JsonObject[], addGenerationPrompt: true };
      expect([...(await tokenizer.encodeChat(chat))]).toEqual(ids);
      expect(decodeTokens(tokenizer.vocabulary, ids, whole)).toBe(text);
    }
  });
});
