/**
 * Int32Arrays lent out by power-of-two length and taken back. Contents are whatever the last borrower left; a
 * fresh array would cost zeroing and page faults, which for a long prompt is dearer than its whole admission.
 */
import { maxPooledBufferWords } from "../../limits";

const smallestClass = 4;

export class Int32BufferPool {
  readonly #free: Int32Array[][] = [];
  #pooledWords = 0;

  /** An array of at least `minLength` words. */
  take(minLength: number): Int32Array {
    const sizeClass = Math.max(smallestClass, 32 - Math.clz32(Math.max(minLength, 1) - 1));
    const buffer = this.#free[sizeClass]?.pop();
    if (buffer === undefined) return new Int32Array(2 ** sizeClass);
    this.#pooledWords -= buffer.length;
    return buffer;
  }

  /** Takes back an array that `take` returned; nobody else may hold it. */
  give(buffer: Int32Array): void {
    if (buffer.length === 0 || this.#pooledWords + buffer.length > maxPooledBufferWords) return;
    const sizeClass = 31 - Math.clz32(buffer.length);
    while (this.#free.length <= sizeClass) this.#free.push([]);
    this.#free[sizeClass].push(buffer);
    this.#pooledWords += buffer.length;
  }

  /**
   * `buffer` itself when it holds `minLength`, else a larger
   * one with its first `length` words; the old one returns.
   */
  grow(buffer: Int32Array, length: number, minLength: number): Int32Array {
    if (minLength <= buffer.length) return buffer;
    const grown = this.take(minLength);
    for (let i = 0; i < length; i++) grown[i] = buffer[i];
    this.give(buffer);
    return grown;
  }
}
