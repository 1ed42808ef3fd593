/** When young garbage is collected: by the rows that were worked on, however they come in plans. */
import { describe, expect, test } from "bun:test";
import { YoungCollector } from "../../src/engine/young-collector";
import { rowsPerCollection } from "../../src/limits";

describe("young garbage", () => {
  test("is collected once for every so many rows, and never by a plan without rows", () => {
    let numCollections = 0;
    const collector = new YoungCollector(() => numCollections++);
    for (let i = 0; i < 10_000; i++) collector.planSubmitted(0);
    expect(numCollections).toBe(0);
    for (let i = 1; i < rowsPerCollection; i++) collector.planSubmitted(1);
    expect(numCollections).toBe(0);
    collector.planSubmitted(1);
    expect(numCollections).toBe(1);
    for (let i = 0; i < 4; i++) collector.planSubmitted(rowsPerCollection / 2);
    expect(numCollections).toBe(3);
  });
});
