/**
 * Text between special tokens is encoded as the plain tokenizer encodes it there, and never spells one
 * itself.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../../src/tokenizer/json";
import { TextEncoding } from "../../src/tokenizer/text-encoder";
import { byteLevelFiles } from "./tokenizer-builder";

const characters = ["▁", "<", "/", "s", ">", "a", "b", "\n"];
const merged = ["▁a", "ab", "</", "s>", "</s>"];
const vocabulary = ["<s>", ...characters, ...merged];
const opening = 0;
const closing = vocabulary.indexOf("</s>");

/** Its merges spell the special token `</s>`, as those of converted SentencePiece models can. */
function spellingTokenizer(
  preTokenizer: JsonObject | null,
  normalizer: JsonObject | null = null,
): TextEncoding {
  return new TextEncoding(
    {
      added_tokens: [opening, closing].map((id) => ({ id, content: vocabulary[id], special: true })),
      normalizer,
      pre_tokenizer: preTokenizer,
      post_processor: null,
      decoder: null,
      model: {
        type: "BPE",
        unk_token: null,
        vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
        merges: ["< /", "s >", "</ s>", "▁ a", "a b"],
      },
    },
    {},
  );
}

const metaspace = (scheme: string): JsonObject => ({
  type: "Metaspace",
  replacement: "▁",
  prepend_scheme: scheme,
  split: false,
});
const prepend: JsonObject = {
  type: "Sequence",
  normalizers: [
    { type: "Prepend", prepend: "▁" },
    { type: "Replace", pattern: { String: " " }, content: "▁" },
  ],
};

const encodings = [
  ["a mark before the first piece", spellingTokenizer(metaspace("first"))],
  ["a mark before every piece", spellingTokenizer(metaspace("always"))],
  ["no mark", spellingTokenizer(metaspace("never"))],
  ["a mark put in by the normalizer", spellingTokenizer(null, prepend)],
] as const;

describe.each(encodings)("an encoding with %s", (_name, encoding) => {
  const text = fc
    .array(fc.constantFrom("<s>", "</s>", "a", "b", "ab", " ", "\n", "</", "<", "s"), { maxLength: 10 })
    .map((parts) => parts.join(""));

  test("gives for the pieces of a text what it gives for the whole", () => {
    fc.assert(
      fc.property(text, (whole) => {
        expect(encoding.encodePieces(encoding.splitter.split(whole))).toEqual(encoding.encodeText(whole));
      }),
      { numRuns: 500 },
    );
  });

  test("gives no special token for a text piece, though its merges spell one", () => {
    fc.assert(
      fc.property(text, (piece) => {
        const ids = encoding.encodePieces([piece]);
        expect(ids).not.toContain(closing);
        expect(ids).not.toContain(opening);
        const spelled = ids.map((id) => vocabulary[id]).join("");
        expect(spelled.replaceAll("▁", "")).toBe(piece.replaceAll(" ", ""));
      }),
      { numRuns: 500 },
    );
  });
});

describe("white space that a special token takes", () => {
  test("goes with it, as in the plain tokenizer", () => {
    const files = byteLevelFiles();
    const added = (files.tokenizer.added_tokens as JsonObject[]).map((token) =>
      token.id === 257 ? { ...token, lstrip: true, rstrip: true } : token,
    );
    const encoding = new TextEncoding({ ...files.tokenizer, added_tokens: added }, files.tokenizerConfig);
    const text = "a  <|im_end|> \n b <|im_start|> c";
    expect(encoding.splitter.split(text)).toEqual(["a", 257, "b ", 256, " c"]);
    expect(encoding.encodePieces(encoding.splitter.split(text))).toEqual(encoding.encodeText(text));
  });
});
