/**
 * Text to token ids, over the library that reads tokenizer.json. Two readings: `encodeText` knows special
 * tokens by their literals, `encodePieces` takes them only as ids and reads every literal in a text piece as
 * text.
 */
import { Tokenizer } from "@huggingface/tokenizers";
import { assert, GranaryError } from "../assert";
import type { AddedToken, PromptPiece } from "./added-tokens";
import { AddedTokenSplitter, readAddedTokens } from "./added-tokens";
import type { JsonObject } from "./json";

export class TextEncoding {
  readonly addedTokens: readonly AddedToken[];
  readonly splitter: AddedTokenSplitter;
  readonly #plain: Tokenizer;
  /**
   * Without special tokens, for a piece at the start of a prompt and for the others. One model serves all
   * three.
   */
  readonly #textAtStart: Tokenizer;
  readonly #textInside: Tokenizer;
  readonly #specialIds: ReadonlySet<number>;

  constructor(tokenizer: JsonObject, tokenizerConfig: JsonObject) {
    this.addedTokens = readAddedTokens(tokenizer);
    this.splitter = new AddedTokenSplitter(this.addedTokens);
    this.#specialIds = new Set(this.addedTokens.filter((token) => token.isSpecial).map((token) => token.id));
    try {
      this.#plain = new Tokenizer(tokenizer, tokenizerConfig);
      this.#textAtStart = this.#withoutSpecials(tokenizer, tokenizerConfig);
      this.#textInside = hasFirstOnlyPrefix(tokenizer)
        ? this.#withoutSpecials(withoutPrefix(tokenizer), tokenizerConfig)
        : this.#textAtStart;
    } catch (error) {
      throw new GranaryError("tokenizer_unsupported", `tokenizer.json: ${(error as Error).message}`);
    }
  }

  idOf(token: string): number | undefined {
    return this.#plain.token_to_id(token);
  }

  tokenOf(id: number): string | undefined {
    return this.#plain.id_to_token(id);
  }

  /** Ids of `text`; literals of special tokens in it become these tokens. Nothing is added in front. */
  encodeText(text: string): number[] {
    return text === "" ? [] : this.#checked(this.#plain.encode(text, { add_special_tokens: false }).ids);
  }

  encodePieces(pieces: readonly PromptPiece[]): number[] {
    const ids: number[] = [];
    pieces.forEach((piece, index) => {
      if (typeof piece === "number") ids.push(piece);
      else for (const id of this.#encodeTextPiece(piece, index === 0)) ids.push(id);
    });
    return ids;
  }

  #encodeTextPiece(piece: string, isAtStart: boolean): number[] {
    if (piece === "") return [];
    const tokenizer = isAtStart ? this.#textAtStart : this.#textInside;
    const ids = this.#checked(tokenizer.encode(piece, { add_special_tokens: false }).ids);
    if (!ids.some((id) => this.#specialIds.has(id))) return ids;
    return this.#encodeWithBrokenLiterals(piece, isAtStart);
  }

  /** For vocabularies whose merges spell a special token: its literal is encoded in two parts. */
  #encodeWithBrokenLiterals(piece: string, isAtStart: boolean): number[] {
    const cuts: number[] = [];
    this.splitter.findSpecials(piece, (begin, token) => {
      cuts.push(begin + (token.content.length >> 1));
    });
    assert(cuts.length > 0, "a special token came out of a text that does not hold its literal");
    let from = 0;
    return [...cuts, piece.length].flatMap((cut) => {
      const part = piece.slice(from, cut);
      const tokenizer = isAtStart && from === 0 ? this.#textAtStart : this.#textInside;
      from = cut;
      return part === "" ? [] : this.#checked(tokenizer.encode(part, { add_special_tokens: false }).ids);
    });
  }

  #withoutSpecials(tokenizer: JsonObject, tokenizerConfig: JsonObject): Tokenizer {
    const added = Array.isArray(tokenizer.added_tokens) ? tokenizer.added_tokens : [];
    const bare = new Tokenizer(
      {
        ...tokenizer,
        model: { type: "BPE", vocab: {}, merges: [], unk_token: null },
        added_tokens: added.filter((entry) => (entry as JsonObject).special !== true),
        post_processor: null,
      },
      { ...tokenizerConfig, additional_special_tokens: [] },
    );
    bare.model = this.#plain.model;
    return bare;
  }

  /** The library marks a character that the vocabulary cannot spell with no id at all. */
  #checked(ids: readonly (number | undefined)[]): number[] {
    if (ids.some((id) => id === undefined)) {
      throw new GranaryError(
        "text_not_encodable",
        "the text holds characters that the vocabulary cannot spell",
      );
    }
    return ids as number[];
  }
}

function hasFirstOnlyPrefix(tokenizer: JsonObject): boolean {
  return JSON.stringify(tokenizer.pre_tokenizer ?? null).includes('"prepend_scheme":"first"');
}

function withoutPrefix(tokenizer: JsonObject): JsonObject {
  const text = JSON.stringify(tokenizer.pre_tokenizer);
  const preTokenizer = text.replaceAll('"prepend_scheme":"first"', '"prepend_scheme":"never"');
  return { ...tokenizer, pre_tokenizer: JSON.parse(preTokenizer) as JsonObject };
}
