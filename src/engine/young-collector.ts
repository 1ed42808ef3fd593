/**
 * Collects young garbage in small portions while a step is with the device. Left to itself the heap fills a
 * nursery of many megabytes, whose pages are cold when they are looked through again, in one long pause.
 */
import { edenGC } from "bun:jsc";
import { rowsPerCollection } from "../limits";

export class YoungCollector {
  readonly #collect: () => unknown;
  #numRows = 0;

  constructor(collect: () => unknown = edenGC) {
    this.#collect = collect;
  }

  /** Told about every plan when it is submitted, before anybody waits for its result. */
  planSubmitted(numRows: number): void {
    this.#numRows += numRows;
    if (this.#numRows < rowsPerCollection) return;
    this.#numRows = 0;
    this.#collect();
  }
}
