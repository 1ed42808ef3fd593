/**
 * Puts the process's memory in order while nobody waits: drops what young collections let grow old, then
 * gathers what is left into huge pages.
 */
import { fullGC } from "bun:jsc";
import { HugePages } from "../../ffi/huge-pages";
import type { IdleTask } from "./loop";

export class IdleMemory implements IdleTask {
  readonly #pages = new HugePages();
  #isCollected = false;

  slice(): boolean {
    if (!this.#isCollected) {
      fullGC();
      this.#isCollected = true;
      return false;
    }
    const isDone = this.#pages.slice();
    if (isDone) this.#isCollected = false;
    return isDone;
  }
}
