/** End tokens are the union of what every file says. */
import { describe, expect, test } from "bun:test";
import { byteLevel } from "./tokenizer-builder";

describe("the end tokens of a model", () => {
  test("come from config, generation config and tokenizer together", () => {
    const tokenizer = byteLevel({
      config: { eos_token_id: 2 },
      generationConfig: { eos_token_id: [2, 7] },
      tokenizerConfig: { eos_token: { content: "<|pad|>" } },
    });
    expect(tokenizer.endTokens).toEqual([2, 7, 258]);
  });

  test("come from the text part of a nested configuration", () => {
    const tokenizer = byteLevel({
      config: { text_config: { eos_token_id: [5] } },
      tokenizerConfig: { eos_token: null },
    });
    expect(tokenizer.endTokens).toEqual([5]);
  });

  test("are none when nobody names one", () => {
    expect(byteLevel({ tokenizerConfig: { eos_token: null } }).endTokens).toEqual([]);
  });
});
