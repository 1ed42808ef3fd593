/**
 * How many LCM blocks the pool gets: what the user says,
 * else what the memory left after everything else allows.
 */
import { freemem } from "node:os";
import type { Device } from "../../ffi/device";
import { GranaryError } from "../assert";
import { maxDefaultCpuCacheBytes } from "../limits";
import type { CacheLayout } from "../recipes/pack";
import type { EngineOptions } from "./engine-options";

export interface PoolSize {
  readonly numLcmBlocks: number;
  readonly remark: string;
}

const mebibyte = 2 ** 20;

/** Bytes that the arena may take. Weights and buffers are already allocated. */
function budgetBytes(device: Device, options: EngineOptions): number {
  if (device.kind === "cpu") {
    return options.cpuCacheBytes ?? Math.min(maxDefaultCpuCacheBytes, Math.floor(freemem() / 4));
  }
  const { totalBytes, freeBytes } = device.info();
  return totalBytes * options.gpuMemoryUtilization - (totalBytes - freeBytes);
}

/** Throws when not even one block fits. */
export function sizePool(device: Device, layout: CacheLayout, options: EngineOptions): PoolSize {
  const bytes = layout.lcmBlockBytes;
  const blockText = `blocks of ${(bytes / mebibyte).toFixed(3)} MiB`;
  if (options.numLcmBlocks !== undefined) {
    return {
      numLcmBlocks: options.numLcmBlocks,
      remark: `${options.numLcmBlocks} ${blockText}, as asked for`,
    };
  }
  const budget = budgetBytes(device, options);
  // One parent more than usable lies in the arena: the null parent.
  const numLcmBlocks = Math.floor(budget / bytes) - 1;
  if (numLcmBlocks < 1) {
    const isAskedFor = device.kind === "cpu" && options.cpuCacheBytes !== undefined;
    const given = isAskedFor ? "are what --cpu-cache-bytes gives the cache" : "are left for the cache";
    throw new GranaryError(
      "no_cache_memory",
      `${(budget / mebibyte).toFixed(1)} MiB ${given}, which needs at least 2 ${blockText}`,
    );
  }
  return { numLcmBlocks, remark: `${numLcmBlocks} ${blockText} in ${(budget / mebibyte).toFixed(0)} MiB` };
}
