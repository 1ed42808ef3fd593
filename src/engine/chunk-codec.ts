/**
 * Packs the plain chunks of a step into one integer array, which crosses threads far cheaper than an object
 * each.
 */
import type { FinishReason, TokenChunk } from "./protocol";

const finishReasons: readonly (FinishReason | undefined)[] = [undefined, "stop", "length", "abort", "error"];
const numFields = 6;
const initialChunks = 64;
const noTokens = new Int32Array();

/** Stands for what a chunk does not have. */
export const absent = -1;

/** Gathers chunks that are integers alone; six integers each, no object. */
export class ChunkPacker {
  #buffer = new Int32Array(initialChunks * numFields);
  #length = 0;

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** `token`, `stopTokenId` and `cachedTokens` may be absent. */
  add(
    id: number,
    choice: number,
    token: number,
    finish: FinishReason | undefined,
    stopTokenId: number,
    cachedTokens: number,
  ): void {
    if (this.#length === this.#buffer.length) this.#grow();
    const [buffer, at] = [this.#buffer, this.#length];
    buffer[at] = id;
    buffer[at + 1] = choice;
    buffer[at + 2] = token;
    buffer[at + 3] = finishReasons.indexOf(finish);
    buffer[at + 4] = stopTokenId;
    buffer[at + 5] = cachedTokens;
    this.#length += numFields;
  }

  /** What was added since the last time, in an array of its own. */
  take(): Int32Array {
    const packed = this.#buffer.slice(0, this.#length);
    this.#length = 0;
    return packed;
  }

  #grow(): void {
    const wider = new Int32Array(2 * this.#buffer.length);
    wider.set(this.#buffer);
    this.#buffer = wider;
  }
}

/** Calls back with each packed chunk, in order. */
export function unpackChunks(packed: Int32Array, visit: (chunk: TokenChunk) => void): void {
  for (let at = 0; at < packed.length; at += numFields) {
    const [id, choice, token, finish, stopTokenId, cachedTokens] = packed.subarray(
      at,
      at + numFields,
    ) as unknown as [number, number, number, number, number, number];
    const reason = finishReasons[finish];
    visit({
      id,
      choice,
      tokens: token === absent ? noTokens : Int32Array.of(token),
      ...(reason === undefined ? {} : { finish: reason }),
      ...(stopTokenId === absent ? {} : { stopTokenId }),
      ...(cachedTokens === absent ? {} : { cachedTokens }),
    });
  }
}
