/**
 * The added tokens of tokenizer.json, and the cutting of a text at them: leftmost first, longest at one
 * place. Only special ones are cut out; the others stay in the text for the encoder, but keep their claim on
 * the characters.
 */
import type { JsonObject } from "./json";
import { isObject } from "./json";

export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly isSpecial: boolean;
  /** White space before (after) the token belongs to it. */
  readonly takesLeft: boolean;
  readonly takesRight: boolean;
}

/** A rendered prompt in pieces: text to encode, or the id of a special token. */
export type PromptPiece = string | number;

interface TrieNode {
  readonly next: Map<string, TrieNode>;
  token: AddedToken | undefined;
}

export function readAddedTokens(tokenizer: JsonObject): AddedToken[] {
  const list = Array.isArray(tokenizer.added_tokens) ? tokenizer.added_tokens : [];
  return list.filter(isObject).map((entry) => ({
    id: Number(entry.id),
    content: String(entry.content),
    isSpecial: entry.special === true,
    takesLeft: entry.lstrip === true,
    takesRight: entry.rstrip === true,
  }));
}

export class AddedTokenSplitter {
  readonly #root: TrieNode = { next: new Map(), token: undefined };
  /** Code units that some token begins with; texts are mostly free of them. */
  readonly #firstUnits = new Set<number>();

  constructor(tokens: readonly AddedToken[]) {
    for (const token of tokens) this.#insert(token);
  }

  /**
   * Cuts `text` at its special tokens; `repair` is applied to every text piece before white space is given
   * away.
   */
  split(text: string, repair: (piece: string) => string = (piece) => piece): PromptPiece[] {
    const pieces: PromptPiece[] = [];
    let start = 0;
    let trimStart = false;
    const pushText = (end: number, trimEnd: boolean) => {
      let piece = repair(text.slice(start, end));
      if (trimStart) piece = piece.trimStart();
      if (trimEnd) piece = piece.trimEnd();
      if (piece !== "") pieces.push(piece);
    };
    this.findSpecials(text, (begin, token) => {
      pushText(begin, token.takesLeft);
      pieces.push(token.id);
      start = begin + token.content.length;
      trimStart = token.takesRight;
    });
    pushText(text.length, false);
    return pieces;
  }

  /** Calls `visit` with the place of every special literal, in order, none overlapping. */
  findSpecials(text: string, visit: (begin: number, token: AddedToken) => void): void {
    for (let at = 0; at < text.length; ) {
      const token = this.#firstUnits.has(text.charCodeAt(at)) ? this.#longestAt(text, at) : undefined;
      if (token?.isSpecial) visit(at, token);
      at += token === undefined ? 1 : token.content.length;
    }
  }

  #insert(token: AddedToken): void {
    if (token.content === "") return;
    this.#firstUnits.add(token.content.charCodeAt(0));
    let node = this.#root;
    for (const unit of token.content.split("")) {
      let next = node.next.get(unit);
      if (next === undefined) {
        next = { next: new Map(), token: undefined };
        node.next.set(unit, next);
      }
      node = next;
    }
    node.token = token;
  }

  #longestAt(text: string, begin: number): AddedToken | undefined {
    let node = this.#root.next.get(text[begin]);
    let longest: AddedToken | undefined;
    for (let at = begin + 1; node !== undefined; at++) {
      longest = node.token ?? longest;
      node = at < text.length ? node.next.get(text[at]) : undefined;
    }
    return longest;
  }
}
