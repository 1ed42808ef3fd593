/** The disk cache of machine code: what was stored comes back whole or not at all, and it stays small. */
import { describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { maxCachedKernels } from "../../src/limits";
import { CubinCache } from "../../src/runtime-kernels/cubin-cache";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const code = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);

const openCache = () => CubinCache.open({ XDG_CACHE_HOME: temporaryDirectory() }) as CubinCache;
const fileOf = (cache: CubinCache, key: string) => join(cache.directory, `${key}.cubin`);

describe("the cache of machine code", () => {
  test("gives back what was stored, also to another process", () => {
    const cache = openCache();
    cache.store("a", code);
    expect(new CubinCache(cache.directory).find("a")).toEqual(Buffer.from(code));
    expect(cache.find("b")).toBeUndefined();
    expect(cache.usage()).toEqual({ numKernels: 1, bytes: code.length + 32, numOthers: 0 });
  });

  test("counts what it would give back, and the rest as others", () => {
    const cache = openCache();
    cache.store("a", code);
    writeFileSync(fileOf(cache, "text"), "a line\n");
    writeFileSync(join(cache.directory, "notes"), "a line\n");
    mkdirSync(fileOf(cache, "folder"));
    expect(cache.usage()).toEqual({ numKernels: 1, bytes: code.length + 32, numOthers: 3 });
    expect(cache.find("folder")).toBeUndefined();
  });

  test("makes room beside a folder that it cannot drop", () => {
    const cache = openCache();
    mkdirSync(fileOf(cache, "folder"));
    utimesSync(fileOf(cache, "folder"), 1, 1);
    for (let i = 0; i <= maxCachedKernels; i++) cache.store(`k${i}`, code.subarray(0, 4));
    expect(cache.usage()).toMatchObject({ numKernels: maxCachedKernels, numOthers: 1 });
  });

  test("leaves nothing but whole files behind", () => {
    const cache = openCache();
    cache.store("a", code);
    cache.store("a", code.subarray(0, 10));
    expect(readdirSync(cache.directory)).toEqual(["a.cubin"]);
    expect(cache.find("a")).toHaveLength(10);
  });

  test("does not believe a file that is cut, changed or empty", () => {
    const cache = openCache();
    for (const damage of [
      (bytes: Buffer) => bytes.subarray(0, -1),
      (bytes: Buffer) => bytes.fill(7, 500, 501),
      (bytes: Buffer) => bytes.fill(7, 3, 4),
      () => Buffer.alloc(0),
    ]) {
      cache.store("a", code);
      const path = fileOf(cache, "a");
      writeFileSync(path, damage(readFileSync(path)));
      expect(cache.find("a")).toBeUndefined();
      cache.store("a", code);
      expect(cache.find("a")).toHaveLength(code.length);
    }
  });

  test("drops what was not used for longest when it is full", () => {
    const cache = openCache();
    for (let i = 0; i < maxCachedKernels; i++) {
      cache.store(`k${i}`, code.subarray(0, 4));
      utimesSync(fileOf(cache, `k${i}`), 1000 + i, 1000 + i);
    }
    expect(cache.find("k0")).toBeDefined(); // used now
    cache.store("new", code);
    expect(cache.usage().numKernels).toBe(maxCachedKernels);
    expect(cache.find("k1")).toBeUndefined();
    expect(cache.find("k0")).toBeDefined();
    expect(cache.find("new")).toBeDefined();
  });

  test("takes no directory that others can write to", () => {
    const [shared, temporary] = [temporaryDirectory(), temporaryDirectory()];
    mkdirSync(join(shared, "granary", "kernels"), { recursive: true });
    chmodSync(join(shared, "granary", "kernels"), 0o777);
    const cache = CubinCache.open({ XDG_CACHE_HOME: shared, TMPDIR: temporary });
    expect(cache?.directory).toStartWith(temporary);
    expect(existsSync(cache?.directory ?? "")).toBe(true);
  });
});
