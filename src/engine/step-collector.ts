/**
 * Collects garbage in small portions while a step is with the device. Left to itself the heap fills a nursery
 * of many megabytes, whose pages are cold when they are looked through again, in one long pause.
 */
import { edenGC, fullGC, heapSize } from "bun:jsc";
import { maxOldGarbageBytes, rowsPerCollection } from "../limits";

export interface Heap {
  collectYoung(): unknown;
  collectAll(): unknown;
  /** In use, what typed arrays hold outside included. */
  bytes(): number;
}

const ownHeap: Heap = { collectYoung: edenGC, collectAll: fullGC, bytes: heapSize };

export class StepCollector {
  readonly #heap: Heap;
  #numRows = 0;
  /** Of the heap, above which the old is looked through too; unknown until the first collection. */
  #limitBytes = Number.NaN;

  constructor(heap: Heap = ownHeap) {
    this.#heap = heap;
  }

  /** Told about every plan when it is submitted, before anybody waits for its result. */
  planSubmitted(numRows: number): void {
    this.#numRows += numRows;
    if (this.#numRows < rowsPerCollection) return;
    this.#numRows = 0;
    this.#heap.collectYoung();
    // A prompt outlives some young collections. Who asks for those alone is never offered a full one.
    const bytes = this.#heap.bytes();
    if (bytes < this.#limitBytes) return;
    if (!Number.isNaN(this.#limitBytes)) this.#heap.collectAll();
    this.#limitBytes = 2 * this.#heap.bytes() + maxOldGarbageBytes;
  }
}
