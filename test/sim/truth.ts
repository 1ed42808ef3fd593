/**
 * What a request's text must be: its prompt, and behind it tokens that a model would derive from nothing but
 * the text in front of them. Every cached row and snapshot has one right value, the hash of the text up to
 * it.
 */
import { mix } from "./random";

export class Truth {
  readonly prompt: number;
  readonly #tokens: number[];
  /** Hash of the first n tokens. */
  readonly #hashes: number[];

  constructor(prompt: readonly number[], namespace: number) {
    this.prompt = prompt.length;
    this.#tokens = [];
    this.#hashes = [mix(0x1234567, namespace)];
    for (const token of prompt) this.#push(token);
  }

  token(position: number): number {
    this.#extend(position + 1);
    return this.#tokens[position];
  }

  hash(count: number): number {
    this.#extend(count);
    return this.#hashes[count];
  }

  #extend(count: number): void {
    while (this.#tokens.length < count) this.#push(1 + (mix(this.#hashes[this.#tokens.length], 77) % 1000));
  }

  #push(token: number): void {
    this.#tokens.push(token);
    this.#hashes.push(mix(this.#hashes[this.#hashes.length - 1], token));
  }
}
