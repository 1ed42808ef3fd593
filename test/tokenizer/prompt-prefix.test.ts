/** Exactly one beginning-of-text token, or none, whoever brings it. */
import { describe, expect, test } from "bun:test";
import { byteLevel } from "./tokenizer-builder";

const bos = 256;
const withBos = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}";
const withoutBos = "{% for m in messages %}{{ m.content }}{% endfor %}";

const configurations = [
  ["the template emits it and add_bos_token is true", withBos, true, 1, 1],
  ["the template does not and add_bos_token is true", withoutBos, true, 1, 1],
  ["the template emits it and add_bos_token is false", withBos, false, 1, 0],
  ["nobody adds it", withoutBos, false, 0, 0],
] as const;

describe.each(configurations)("when %s", (_name, chatTemplate, addBos, inChat, inText) => {
  const tokenizer = byteLevel({ chatTemplate, tokenizerConfig: { add_bos_token: addBos } });
  const count = (ids: Int32Array) => [...ids].filter((id) => id === bos).length;

  test(`a conversation gets ${inChat}`, async () => {
    const ids = await tokenizer.encodeChat({
      messages: [{ role: "user", content: "hi" }],
      addGenerationPrompt: true,
    });
    expect(count(ids)).toBe(inChat);
  });

  test(`a raw text gets ${inText}`, async () => {
    expect(count(await tokenizer.encodePrompt("hi"))).toBe(inText);
  });

  test("a raw text that begins with the literal gets one", async () => {
    expect(count(await tokenizer.encodePrompt("<|im_start|>hi"))).toBe(1);
  });

  test("nothing is added where that is not wanted", async () => {
    expect([...(await tokenizer.encodePrompt("hi", false))]).toEqual([71, 72]);
  });
});

describe("the post-processor of tokenizer.json", () => {
  const post_processor = {
    type: "TemplateProcessing",
    single: [
      { SpecialToken: { id: "<|pad|>", type_id: 0 } },
      { SpecialToken: { id: "<|im_start|>", type_id: 0 } },
      { Sequence: { id: "A", type_id: 0 } },
      { SpecialToken: { id: "<|im_end|>", type_id: 0 } },
    ],
  };

  test("names the tokens in front; those behind the text are never added", async () => {
    const tokenizer = byteLevel({ tokenizer: { post_processor } });
    expect([...(await tokenizer.encodePrompt("hi"))]).toEqual([258, 256, 71, 72]);
  });

  test("is overruled by add_bos_token: false for that token alone", async () => {
    const tokenizer = byteLevel({ tokenizer: { post_processor }, tokenizerConfig: { add_bos_token: false } });
    expect([...(await tokenizer.encodePrompt("hi"))]).toEqual([258, 71, 72]);
  });
});
