/** Lending, growing and bounding of pooled int32 buffers. */
import { describe, expect, test } from "bun:test";
import { Int32BufferPool } from "../../../src/cache/core/int32-buffer-pool";
import { maxPooledBufferWords } from "../../../src/limits";

describe("a buffer pool", () => {
  test("lends at least what was asked for and lends it again when it came back", () => {
    const pool = new Int32BufferPool();
    for (const length of [1, 16, 17, 100, 4096, 4097]) {
      const buffer = pool.take(length);
      expect(buffer.length).toBeGreaterThanOrEqual(length);
      pool.give(buffer);
      expect(pool.take(length)).toBe(buffer);
    }
  });

  test("keeps the contents when a buffer grows", () => {
    const pool = new Int32BufferPool();
    const small = pool.take(16);
    small.set([1, 2, 3]);
    const large = pool.grow(small, 3, 1000);
    expect(Array.from(large.subarray(0, 3))).toEqual([1, 2, 3]);
    expect(pool.grow(large, 3, 1000)).toBe(large);
    expect(pool.take(16)).toBe(small);
  });

  test("lets go of more than its bound", () => {
    const pool = new Int32BufferPool();
    const whole = pool.take(maxPooledBufferWords);
    const more = pool.take(16);
    pool.give(whole);
    pool.give(more);
    expect(pool.take(16)).not.toBe(more);
    expect(pool.take(maxPooledBufferWords)).toBe(whole);
  });
});
