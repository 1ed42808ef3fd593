/**
 * Keeps user text from becoming control tokens: the literal of a special token inside it is broken by a
 * character that occurs in no text at hand, the template is rendered, and the character is taken out again
 * after the rendered text has been cut at the special tokens that are left. A text that could complete a
 * literal together with its neighbour is broken too.
 */
import { GranaryError } from "../assert";
import type { AddedToken, AddedTokenSplitter } from "./added-tokens";

/** First and last of the private-use characters that may serve as the mark. */
const firstMark = 0xe000;
const lastMark = 0xf8ff;

/** Shortest part of a literal at the edge of a text that counts as an attempt to build it from two texts. */
const minEdgeLength = 2;

export class LiteralGuard {
  readonly #splitter: AddedTokenSplitter;
  /** Beginnings and ends of special literals, at least two characters, never whole. */
  readonly #heads = new Set<string>();
  readonly #tails = new Set<string>();
  readonly #longestEdge: number;

  constructor(tokens: readonly AddedToken[], splitter: AddedTokenSplitter) {
    this.#splitter = splitter;
    let longestEdge = 0;
    for (const { content, isSpecial } of tokens) {
      if (!isSpecial) continue;
      for (let length = minEdgeLength; length < content.length; length++) {
        this.#heads.add(content.slice(0, length));
        this.#tails.add(content.slice(-length));
        longestEdge = Math.max(longestEdge, length);
      }
    }
    this.#longestEdge = longestEdge;
  }

  /** A character that is in none of `texts`. */
  pickMark(texts: readonly string[]): string {
    for (let code = firstMark; code <= lastMark; code++) {
      const mark = String.fromCharCode(code);
      if (texts.every((text) => !text.includes(mark))) return mark;
    }
    throw new GranaryError("text_not_encodable", "the text uses every private-use character there is");
  }

  /** `text` with `mark` inside every special literal and inside the part of one at either edge. */
  protect(text: string, mark: string): string {
    const cuts: number[] = [];
    if (this.#edgeLength(text, this.#tails, (length) => text.slice(0, length)) > 0) cuts.push(1);
    this.#splitter.findSpecials(text, (begin) => {
      cuts.push(begin + 1);
    });
    if (this.#edgeLength(text, this.#heads, (length) => text.slice(-length)) > 0) cuts.push(text.length - 1);
    if (cuts.length === 0) return text;
    let result = "";
    let from = 0;
    for (const cut of new Set(cuts.sort((a, b) => a - b))) {
      result += text.slice(from, cut) + mark;
      from = cut;
    }
    return result + text.slice(from);
  }

  #edgeLength(text: string, edges: ReadonlySet<string>, edge: (length: number) => string): number {
    const longest = Math.min(text.length, this.#longestEdge);
    for (let length = longest; length >= minEdgeLength; length--) {
      if (edges.has(edge(length))) return length;
    }
    return 0;
  }
}
