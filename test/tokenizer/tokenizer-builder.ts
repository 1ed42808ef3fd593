/**
 * Small tokenizers made in place: byte-level from the fixture, and one with byte fallback and word-start
 * marks.
 */
import { readFileSync } from "node:fs";
import type { JsonObject } from "../../src/tokenizer/json";
import { ModelTokenizer, type ModelTokenizerOptions } from "../../src/tokenizer/model-tokenizer";
import { readTokenizerFiles, type TokenizerFiles } from "../../src/tokenizer/tokenizer-files";

const folder = `${import.meta.dir}/../fixtures/tokenizer/byte-level/`;

export interface FilesChange {
  readonly tokenizer?: JsonObject;
  readonly tokenizerConfig?: JsonObject;
  readonly config?: JsonObject;
  readonly generationConfig?: JsonObject;
  readonly chatTemplate?: string | undefined;
}

/** 256 byte tokens, `<|im_start|>` 256, `<|im_end|>` 257 and 62 further special tokens. */
export function byteLevelFiles(change: FilesChange = {}): TokenizerFiles {
  const files = readTokenizerFiles((name) => {
    try {
      return readFileSync(folder + name, "utf8");
    } catch {
      return undefined;
    }
  });
  return {
    tokenizer: { ...files.tokenizer, ...change.tokenizer },
    tokenizerConfig: { ...files.tokenizerConfig, ...change.tokenizerConfig },
    config: { ...files.config, ...change.config },
    generationConfig: { ...files.generationConfig, ...change.generationConfig },
    chatTemplate: "chatTemplate" in change ? change.chatTemplate : files.chatTemplate,
  };
}

export function byteLevel(change: FilesChange = {}, options: ModelTokenizerOptions = {}): ModelTokenizer {
  return new ModelTokenizer(byteLevelFiles(change), options);
}

/**
 * As SentencePiece models come: `▁` before words, whatever has no piece as `<0xHH>`, one space dropped at
 * the start.
 */
export function byteFallback(): ModelTokenizer {
  const pieces = [
    "<unk>",
    "<s>",
    "</s>",
    ...byteTokens(),
    "▁",
    "n",
    "a",
    "v",
    "e",
    "▁n",
    "▁na",
    "h",
    "i",
    "▁h",
    "▁hi",
  ];
  return new ModelTokenizer({
    ...byteLevelFiles(),
    tokenizer: {
      added_tokens: [0, 1, 2].map((id) => ({ id, content: pieces[id], special: true, normalized: false })),
      normalizer: {
        type: "Sequence",
        normalizers: [
          { type: "Prepend", prepend: "▁" },
          { type: "Replace", pattern: { String: " " }, content: "▁" },
        ],
      },
      pre_tokenizer: null,
      post_processor: null,
      decoder: {
        type: "Sequence",
        decoders: [
          { type: "Replace", pattern: { String: "▁" }, content: " " },
          { type: "ByteFallback" },
          { type: "Fuse" },
          { type: "Strip", content: " ", start: 1, stop: 0 },
        ],
      },
      model: {
        type: "BPE",
        unk_token: "<unk>",
        fuse_unk: true,
        byte_fallback: true,
        vocab: Object.fromEntries(pieces.map((piece, id) => [piece, id])),
        merges: ["▁ n", "▁n a", "▁ h", "▁h i"],
      },
    },
    tokenizerConfig: { bos_token: "<s>", eos_token: "</s>", add_bos_token: true },
  });
}

function byteTokens(): string[] {
  return Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
}

/** Ids of the single bytes of `text` in the byte-level fixture. */
export async function byteIds(tokenizer: ModelTokenizer, text: string): Promise<number[]> {
  return [...(await tokenizer.encodePrompt(text, false))];
}
