/** How many LCM blocks a pool gets, and when there is no room for any. */
import { describe, expect, test } from "bun:test";
import type { Device } from "../../ffi/device";
import type { EngineOptions } from "../../src/engine/engine-options";
import { sizePool } from "../../src/engine/size-pool";
import { maxDefaultCpuCacheBytes } from "../../src/limits";
import { pack } from "../../src/recipes/pack";
import { byteField, historyGroup } from "../support/cache-fields";
import { expectError } from "../support/expect-error";

const mebibyte = 2 ** 20;
const layout = pack([historyGroup("full_attention", 8, [byteField("k", "p", mebibyte)])], {
  prefixGranularity: 8,
});

const cpu = { kind: "cpu" } as Device;
const gpuWith = (totalBytes: number, freeBytes: number) =>
  ({ kind: "cuda", info: () => ({ totalBytes, freeBytes }) }) as unknown as Device;

function sized(device: Device, options: Partial<EngineOptions>) {
  return sizePool(device, layout, { gpuMemoryUtilization: 0.9, ...options } as EngineOptions);
}

describe("a pool", () => {
  test("has as many blocks as the user says, whatever the memory", () => {
    expect(sized(cpu, { numLcmBlocks: 7, cpuCacheBytes: 1 }).numLcmBlocks).toBe(7);
    expect(sized(gpuWith(mebibyte, 0), { numLcmBlocks: 7 }).remark).toContain("as asked for");
  });

  test("leaves room for the null block", () => {
    expect(sized(cpu, { cpuCacheBytes: 10 * mebibyte }).numLcmBlocks).toBe(9);
    expect(sized(cpu, { cpuCacheBytes: 10 * mebibyte - 1 }).numLcmBlocks).toBe(8);
  });

  test("on a GPU takes its share of all memory less what is in use", () => {
    expect(sized(gpuWith(1000 * mebibyte, 600 * mebibyte), {}).numLcmBlocks).toBe(499);
    expect(sized(gpuWith(1000 * mebibyte, 600 * mebibyte), { gpuMemoryUtilization: 0.5 }).numLcmBlocks).toBe(
      99,
    );
  });

  test("on the CPU stays within its default", () => {
    const { numLcmBlocks } = sized(cpu, {});
    expect(numLcmBlocks).toBeGreaterThan(0);
    expect(numLcmBlocks).toBeLessThan(maxDefaultCpuCacheBytes / mebibyte);
  });

  test("without room for two blocks is refused with what is left", () => {
    expectError(
      () => sized(cpu, { cpuCacheBytes: 2 * mebibyte - 1 }),
      "no_cache_memory",
      "2.0 MiB",
      "--cpu-cache-bytes",
      "at least 2",
    );
    expectError(() => sized(gpuWith(1000 * mebibyte, 50 * mebibyte), {}), "no_cache_memory", "-50.0 MiB");
  });
});
