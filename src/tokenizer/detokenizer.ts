/** Turns the tokens of one stream into text as they come, never giving out half a character. */
import type { TokenBytes } from "./token-bytes";
import { incompleteTailLength } from "./utf8";

const replacing = new TextDecoder("utf-8", { ignoreBOM: true });
const noBytes = new Uint8Array(0);

export interface DetokenizerOptions {
  /** Control tokens leave no text. */
  readonly skipSpecialTokens: boolean;
  /** The first token begins a text: the space that the vocabulary puts before words is dropped there. */
  readonly atTextStart: boolean;
}

export class IncrementalDetokenizer {
  readonly #vocabulary: TokenBytes;
  readonly #skipSpecialTokens: boolean;
  #spacesToDrop: number;
  #isFirst: boolean;
  /** Bytes of a character that has begun: at most three. */
  #pending: Uint8Array = noBytes;

  constructor(vocabulary: TokenBytes, options: DetokenizerOptions) {
    this.#vocabulary = vocabulary;
    this.#skipSpecialTokens = options.skipSpecialTokens;
    this.#spacesToDrop = options.atTextStart ? vocabulary.leadingSpaces : 0;
    this.#isFirst = options.atTextStart;
  }

  /** The text that became certain with token `id`. */
  push(id: number): string {
    const entry = this.#vocabulary.entry(id);
    if (entry.isSpecial && this.#skipSpecialTokens) return "";
    const separator = this.#vocabulary.joinsWithSpace && !this.#isFirst ? " " : "";
    this.#isFirst = false;
    if (this.#pending.length === 0 && entry.isWhole) return separator + this.#dropSpaces(entry.text);
    return this.#dropSpaces(separator + this.#decode(entry.bytes));
  }

  /** The end of the stream: a character that never came to its end is U+FFFD. */
  flush(): string {
    const text = this.#pending.length > 0 ? replacing.decode(this.#pending) : "";
    this.#pending = noBytes;
    return text;
  }

  #decode(bytes: Uint8Array): string {
    let all = bytes;
    if (this.#pending.length > 0) {
      all = new Uint8Array(this.#pending.length + bytes.length);
      all.set(this.#pending);
      all.set(bytes, this.#pending.length);
    }
    const tailLength = incompleteTailLength(all);
    const end = all.length - tailLength;
    this.#pending = tailLength === 0 ? noBytes : all.slice(end);
    return end === 0 ? "" : replacing.decode(all.subarray(0, end));
  }

  #dropSpaces(text: string): string {
    if (this.#spacesToDrop === 0 || text === "") return text;
    let begin = 0;
    while (begin < this.#spacesToDrop && text[begin] === " ") begin += 1;
    this.#spacesToDrop = 0;
    return text.slice(begin);
  }
}

/** The text of `ids` all at once. */
export function decodeTokens(
  vocabulary: TokenBytes,
  ids: Iterable<number>,
  options: DetokenizerOptions,
): string {
  const detokenizer = new IncrementalDetokenizer(vocabulary, options);
  let text = "";
  for (const id of ids) text += detokenizer.push(id);
  return text + detokenizer.flush();
}
