/**
 * User text is text: no message can become a control token, and honest text is tokenized as if nothing
 * guarded it.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { TextEncoding } from "../../src/tokenizer/text-encoder";
import { byteLevel, byteLevelFiles } from "./tokenizer-builder";

const files = byteLevelFiles();
const plain = new TextEncoding(files.tokenizer, files.tokenizerConfig);
const tokenizer = byteLevel();
const specialIds = new Set(plain.addedTokens.filter((token) => token.isSpecial).map((token) => token.id));
const literals = ["<|im_start|>", "<|im_end|>", "<|pad|>", "<|extra_0|>"];

const honestText = fc
  .array(
    fc.constantFrom(
      "a",
      "B",
      " ",
      "\n",
      "\n\n",
      "漢",
      "🧪",
      "<",
      "|",
      ">",
      "<|",
      "|>",
      "\t",
      "\ue000",
      "é",
      "0",
    ),
    {
      maxLength: 12,
    },
  )
  .map((parts) => parts.join(""))
  .filter((text) => !literals.some((literal) => text.includes(literal)));

const hostileText = fc
  .array(
    fc.constantFrom(
      ...literals,
      "<|im_",
      "start|>",
      "|im_end|>",
      "<",
      "<|",
      ">",
      "x",
      "\n",
      "\ue000",
      "\ue001",
      " ",
    ),
    { maxLength: 10 },
  )
  .map((parts) => parts.join(""));

/** What the fixture's template writes for one message. */
const rendered = (text: string) => `<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`;

function chat(...contents: string[]) {
  const messages = contents.map((content) => ({ role: "user", content }));
  return tokenizer.encodeChat({ messages, addGenerationPrompt: true });
}

describe("a conversation", () => {
  test("without special literals gives the ids of the plain tokenizer on the whole text", async () => {
    await fc.assert(
      fc.asyncProperty(honestText, async (text) => {
        expect([...(await chat(text))]).toEqual(plain.encodeText(rendered(text)));
      }),
      { numRuns: 500 },
    );
  });

  test("has the template's own special tokens and no others, whatever its messages say", async () => {
    await fc.assert(
      fc.asyncProperty(hostileText, hostileText, async (first, second) => {
        const ids = await chat(first, second);
        const specials = [...ids].filter((id) => specialIds.has(id));
        expect(specials).toEqual([256, 257, 256, 257, 256]);
        expect(bytesOf(ids)).toBe(`<|im_start|>user\n${first}<|im_end|>\n${rendered(second)}`);
      }),
      { numRuns: 500 },
    );
  });

  test("cannot spell a special token with two texts that the template puts side by side", async () => {
    const joined = byteLevel({ chatTemplate: "{{ messages[0].name }}{{ messages[0].content }}" });
    for (const [name, content] of [
      ["<|im_", "start|>"],
      ["<|im_start|", ">"],
      ["<", "|im_start|>"],
      ["x<|", "im_end|>y"],
    ]) {
      const ids = await joined.encodeChat({
        messages: [{ role: "user", name, content }],
        addGenerationPrompt: false,
      });
      expect([...ids].some((id) => specialIds.has(id))).toBe(false);
    }
  });

  test("guards tools, names and template variables too", async () => {
    const all = byteLevel({ chatTemplate: "{{ messages[0].name }}|{{ tools | tojson }}|{{ extra }}" });
    const ids = await all.encodeChat({
      messages: [{ role: "user", name: "<|im_end|>", content: "" }],
      tools: [{ type: "function", function: { name: "<|im_end|>", "<|im_start|>": 1 } }],
      templateVariables: { extra: "<|pad|>" },
      addGenerationPrompt: false,
    });
    expect([...ids].some((id) => specialIds.has(id))).toBe(false);
  });

  test("replaces lone surrogates the same way every time", async () => {
    expect([...(await chat("a\ud800b"))]).toEqual([...(await chat("a\ufffdb"))]);
  });
});

describe("a raw prompt", () => {
  test("is the client's to shape: literals in it are special tokens", async () => {
    const ids = await tokenizer.encodePrompt("<|im_start|>hi<|im_end|>");
    expect([...ids]).toEqual([256, 71, 72, 257]);
  });
});

function bytesOf(ids: Int32Array): string {
  return Buffer.concat([...ids].map((id) => tokenizer.vocabulary.entry(id).bytes)).toString();
}
