/**
 * One request's page digests, computed as far as anybody asked. Holds hashes, not what is cached under them.
 */
import type { Int32BufferPool } from "../core/int32-buffer-pool";
import type { PrefixHasher, TokenSource } from "./prefix-hasher";

const noWords = new Int32Array(0);

export class PrefixChain {
  /** Digest of page i at i * 8. */
  words: Int32Array = noWords;
  #root: Int32Array | undefined;
  #numComputed = 0;
  /** Pages that the request has completed and accounted for; hashes may have been computed ahead of it. */
  numKnown = 0;

  constructor(namespaceRoot?: Uint8Array) {
    this.start(namespaceRoot);
  }

  /**
   * Starts a chain where none is. `namespaceRoot`: 32 bytes that stand before page 0, absent for the common
   * namespace.
   */
  start(namespaceRoot: Uint8Array | undefined): void {
    // Copied byte by byte: a view of a shared buffer must not bring its surroundings along.
    this.#root =
      namespaceRoot === undefined ? undefined : new Int32Array(Uint8Array.from(namespaceRoot).buffer);
  }

  get numComputed(): number {
    return this.#numComputed;
  }

  get root(): Int32Array | undefined {
    return this.#root;
  }

  /** Makes room for the digests of `numPages` pages that will likely all be asked for. */
  reserve(numPages: number, buffers: Int32BufferPool): void {
    this.words = buffers.grow(this.words, this.#numComputed * 8, numPages * 8);
  }

  /** Computes digests up to `numPages`. */
  extend(numPages: number, tokens: TokenSource, hasher: PrefixHasher, buffers: Int32BufferPool): void {
    if (numPages <= this.#numComputed) return;
    this.words = buffers.grow(this.words, this.#numComputed * 8, numPages * 8);
    for (let page = this.#numComputed; page < numPages; page++) {
      const begin = page * hasher.prefixGranularity;
      if (page === 0) hasher.hashPage(tokens, 0, this.#root, 0, this.words, 0);
      else hasher.hashPage(tokens, begin, this.words, (page - 1) * 8, this.words, page * 8);
    }
    this.#numComputed = numPages;
  }

  /** Forgets digests of pages whose tokens were cut. */
  truncate(numPages: number): void {
    this.#numComputed = Math.min(this.#numComputed, numPages);
    this.numKnown = Math.min(this.numKnown, numPages);
  }

  release(buffers: Int32BufferPool): void {
    buffers.give(this.words);
    this.words = noWords;
    this.#numComputed = 0;
    this.numKnown = 0;
  }
}
