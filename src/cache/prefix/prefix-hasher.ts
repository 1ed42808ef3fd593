/**
 * Hashes prefix pages: SHA-256 over the framed digest of the page before and the page's tokens, so that a
 * digest names a whole prefix. Digests are eight words; hex exists only at the borders.
 */

/** Where the tokens of a prefix are read from. */
export interface TokenSource {
  /** Copies tokens [begin, begin + count) to target[at...]. */
  copyTokens(begin: number, count: number, target: Int32Array, at: number): void;
}

export class PrefixHasher {
  readonly prefixGranularity: number;
  /** u32 length of the prior, prior, u32 token count, tokens: all words little-endian. */
  readonly #chained: Int32Array<ArrayBuffer>;
  readonly #chainedBytes: Uint8Array<ArrayBuffer>;
  readonly #first: Int32Array<ArrayBuffer>;
  readonly #firstBytes: Uint8Array<ArrayBuffer>;
  readonly #digest = new Int32Array(8);
  readonly #digestBytes = new Uint8Array(this.#digest.buffer);

  constructor(prefixGranularity: number) {
    this.prefixGranularity = prefixGranularity;
    this.#chained = new Int32Array(10 + prefixGranularity);
    this.#chained[0] = 32;
    this.#chained[9] = prefixGranularity;
    this.#chainedBytes = new Uint8Array(this.#chained.buffer);
    this.#first = new Int32Array(2 + prefixGranularity);
    this.#first[1] = prefixGranularity;
    this.#firstBytes = new Uint8Array(this.#first.buffer);
  }

  /**
   * Writes the digest of the page that starts at token `begin` to target[at...]. The prior digest stands at
   * prior[priorAt...]; without one this is the first page of the common namespace.
   */
  hashPage(
    tokens: TokenSource,
    begin: number,
    prior: Int32Array | undefined,
    priorAt: number,
    target: Int32Array,
    at: number,
  ): void {
    if (prior === undefined) {
      tokens.copyTokens(begin, this.prefixGranularity, this.#first, 2);
      Bun.SHA256.hash(this.#firstBytes, this.#digestBytes);
    } else {
      for (let i = 0; i < 8; i++) this.#chained[1 + i] = prior[priorAt + i];
      tokens.copyTokens(begin, this.prefixGranularity, this.#chained, 10);
      Bun.SHA256.hash(this.#chainedBytes, this.#digestBytes);
    }
    for (let i = 0; i < 8; i++) target[at + i] = this.#digest[i];
  }
}

const hexDigits = "0123456789abcdef";

/** 64 lowercase hex digits of the digest at words[at...]. */
export function digestToHex(words: Int32Array, at: number): string {
  let hex = "";
  for (let i = 0; i < 32; i++) {
    const byte = (words[at + (i >> 2)] >>> ((i & 3) * 8)) & 255;
    hex += hexDigits[byte >> 4] + hexDigits[byte & 15];
  }
  return hex;
}

/** Inverse of `digestToHex`. */
export function hexToDigest(hex: string): Int32Array {
  const bytes = new Uint8Array(32);
  for (let i = 0; i < 32; i++) bytes[i] = Number.parseInt(hex.slice(i * 2, i * 2 + 2), 16);
  return new Int32Array(bytes.buffer);
}
