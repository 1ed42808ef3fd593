/**
 * The bytes that each token id stands for, worked out when an id is first seen, and which ids are control
 * tokens.
 */
import type { AddedToken } from "./added-tokens";
import type { TokenDecoder } from "./token-decoder";
import { incompleteTailLength } from "./utf8";

const replacing = new TextDecoder("utf-8", { ignoreBOM: true });

export interface TokenEntry {
  readonly bytes: Uint8Array;
  /** The text of the bytes by themselves; a part of a character shows as U+FFFD. */
  readonly text: string;
  /** The bytes begin at a character and end at one, so `text` is right wherever a character may begin. */
  readonly isWhole: boolean;
  readonly isSpecial: boolean;
}

export class TokenBytes {
  readonly leadingSpaces: number;
  readonly joinsWithSpace: boolean;
  readonly #decoder: TokenDecoder;
  readonly #tokenOf: (id: number) => string | undefined;
  readonly #addedTokens: ReadonlyMap<number, AddedToken>;
  readonly #entries: TokenEntry[] = [];

  constructor(
    decoder: TokenDecoder,
    tokenOf: (id: number) => string | undefined,
    addedTokens: readonly AddedToken[],
  ) {
    this.leadingSpaces = decoder.leadingSpaces;
    this.joinsWithSpace = decoder.joinsWithSpace;
    this.#decoder = decoder;
    this.#tokenOf = tokenOf;
    this.#addedTokens = new Map(addedTokens.map((token) => [token.id, token]));
  }

  /** Ids that the vocabulary does not name (rows that only pad the output matrix) have no bytes. */
  entry(id: number): TokenEntry {
    return this.#entries[id] ?? this.#makeEntry(id);
  }

  #makeEntry(id: number): TokenEntry {
    const added = this.#addedTokens.get(id);
    const token = this.#tokenOf(id);
    let bytes: Uint8Array = new Uint8Array(0);
    if (added !== undefined) bytes = this.#decoder.bytesOfAdded(added.content);
    else if (token !== undefined) bytes = this.#decoder.bytesOf(token);
    const text = replacing.decode(bytes);
    const entry = {
      bytes,
      text,
      isWhole: incompleteTailLength(bytes) === 0 && !text.startsWith("\ufffd"),
      isSpecial: added?.isSpecial ?? false,
    };
    this.#entries[id] = entry;
    return entry;
  }
}
