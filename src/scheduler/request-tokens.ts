/**
 * A request's tokens: the adopted prompt, never copied and never written, and behind it what was generated.
 * `window` is contiguous, because executors and kernels read it as it is.
 */
import type { Int32BufferPool } from "../cache/core/int32-buffer-pool";
import type { TokenSource } from "../cache/prefix/prefix-hasher";

const none = new Int32Array(0);

export class RequestTokens implements TokenSource {
  /** The tokens that are prefilled: the prompt, after a rebase with the tokens generated until then. */
  #window: Int32Array = none;
  #windowLength = 0;
  #generated: Int32Array = none;
  #numGenerated = 0;

  constructor(prompt: Int32Array = none) {
    this.adopt(prompt);
  }

  /** Starts with a prompt; nothing of an earlier one is left. */
  adopt(prompt: Int32Array): void {
    this.#window = prompt;
    this.#windowLength = prompt.length;
  }

  get window(): Int32Array {
    return this.#window;
  }

  /** All tokens. */
  get size(): number {
    return this.#windowLength + this.#numGenerated;
  }

  at(position: number): number {
    return position < this.#windowLength
      ? this.#window[position]
      : this.#generated[position - this.#windowLength];
  }

  append(token: number, buffers: Int32BufferPool): void {
    if (this.#numGenerated === this.#generated.length) {
      this.#generated = buffers.grow(
        this.#generated,
        this.#numGenerated,
        Math.max(64, this.#numGenerated + 1),
      );
    }
    this.#generated[this.#numGenerated++] = token;
  }

  /** Drops tokens behind `size`; the prefill window is never cut. */
  truncate(size: number): void {
    this.#numGenerated = Math.min(this.#numGenerated, Math.max(0, size - this.#windowLength));
  }

  /** Makes everything so far the window, as a retracted request must compute it anew. */
  rebase(buffers: Int32BufferPool): void {
    if (this.#numGenerated === 0) return;
    const size = this.size;
    // A plan may still show the window to an executor, so it never comes from the pool.
    const merged = new Int32Array(size);
    this.copyTokens(0, size, merged, 0);
    this.release(buffers);
    this.#window = merged;
    this.#windowLength = size;
  }

  copyTokens(begin: number, count: number, target: Int32Array, at: number): void {
    const inWindow = Math.max(0, Math.min(count, this.#windowLength - begin));
    for (let i = 0; i < inWindow; i++) target[at + i] = this.#window[begin + i];
    const first = begin - this.#windowLength;
    for (let i = inWindow; i < count; i++) target[at + i] = this.#generated[first + i];
  }

  /** Gives buffers back; the adopted prompt is merely forgotten. */
  release(buffers: Int32BufferPool): void {
    buffers.give(this.#generated);
    this.#generated = none;
    this.#numGenerated = 0;
    this.#window = none;
    this.#windowLength = 0;
  }
}
