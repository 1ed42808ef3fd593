/** 64-bit FNV-1a in two 32-bit halves: a byte at a time in BigInt would cost a page more than its SHA-256. */

export class Fnv1a64 {
  #high = 0;
  #low = 0;

  reset(): this {
    this.#high = 0xcbf29ce4;
    this.#low = 0x84222325;
    return this;
  }

  byte(value: number): this {
    const low = (this.#low ^ value) >>> 0;
    // The prime is 2^40 + 0x1b3.
    const product = low * 0x1b3;
    const carry = Math.floor(product / 0x1_0000_0000);
    this.#high = (Math.imul(this.#high, 0x1b3) + carry + (low << 8)) >>> 0;
    this.#low = product >>> 0;
    return this;
  }

  word(value: number): this {
    return this.byte(value & 255)
      .byte((value >>> 8) & 255)
      .byte((value >>> 16) & 255)
      .byte(value >>> 24);
  }

  get value(): bigint {
    return (BigInt(this.#high) << 32n) | BigInt(this.#low);
  }
}

const hasher = new Fnv1a64();

/**
 * Event hash of a block: whether it has a parent, the
 * parent, the token count and the tokens, all little-endian.
 */
export function eventHash(parent: bigint | undefined, tokens: ArrayLike<number>): bigint {
  hasher.reset().byte(parent === undefined ? 0 : 1);
  if (parent !== undefined) hasher.word(Number(parent & 0xffff_ffffn)).word(Number(parent >> 32n));
  hasher.word(tokens.length).word(0);
  for (let i = 0; i < tokens.length; i++) hasher.word(tokens[i]);
  return hasher.value;
}
