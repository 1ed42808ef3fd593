/** When garbage is collected: the young by the rows worked on, the old when it outweighs what lives. */

import { heapSize } from "bun:jsc";
import { describe, expect, test } from "bun:test";
import { StepCollector } from "../../src/engine/step-collector";
import { maxOldGarbageBytes, rowsPerCollection } from "../../src/limits";

/** A heap that grows by `growthBytes` from young collection to young collection. */
function fakeHeap(growthBytes: number) {
  const heap = { live: 1_000_000, old: 0, numYoung: 0, numFull: 0 };
  return Object.assign(heap, {
    collectYoung: () => {
      heap.numYoung++;
      heap.old += growthBytes;
    },
    collectAll: () => {
      heap.numFull++;
      heap.old = 0;
    },
    bytes: () => heap.live + heap.old,
  });
}

describe("young garbage", () => {
  test("is collected once for every so many rows, and never by a plan without rows", () => {
    const heap = fakeHeap(0);
    const collector = new StepCollector(heap);
    for (let i = 0; i < 10_000; i++) collector.planSubmitted(0);
    expect(heap.numYoung).toBe(0);
    for (let i = 1; i < rowsPerCollection; i++) collector.planSubmitted(1);
    expect(heap.numYoung).toBe(0);
    collector.planSubmitted(1);
    expect(heap.numYoung).toBe(1);
    for (let i = 0; i < 4; i++) collector.planSubmitted(rowsPerCollection / 2);
    expect(heap.numYoung).toBe(3);
    expect(heap.numFull).toBe(0);
  });
});

describe("old garbage", () => {
  test("is collected when it has outgrown what lives and the allowance, not before", () => {
    const growthBytes = maxOldGarbageBytes / 10;
    const heap = fakeHeap(growthBytes);
    const collector = new StepCollector(heap);
    for (let i = 0; i < 200; i++) {
      collector.planSubmitted(rowsPerCollection);
      expect(heap.bytes()).toBeLessThan(3 * heap.live + maxOldGarbageBytes + 2 * growthBytes);
    }
    expect(heap.numFull).toBeGreaterThan(10);
    expect(heap.numFull).toBeLessThan(25);
  });

  test("of prompts that outlive young collections does not pile up in a real heap", () => {
    const collector = new StepCollector();
    const live: Int32Array[] = [];
    const before = heapSize();
    for (let i = 0; i < 20_000; i++) {
      live[i % 50] = new Int32Array(10_000);
      if (i % 20 === 0) collector.planSubmitted(rowsPerCollection);
    }
    // 800 MB went through; 2 MB of it live.
    expect(heapSize() - before).toBeLessThan(before + 2 * maxOldGarbageBytes);
  });
});
