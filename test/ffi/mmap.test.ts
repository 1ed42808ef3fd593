/** Mapped files: exact bytes at any offset, of any size. */
import { describe, expect, test } from "bun:test";
import { closeSync, ftruncateSync, openSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { bytesAt, isSameMemory } from "../../ffi/host-memory";
import { addressOf, mapFile } from "../../ffi/mmap";
import { expectError } from "../support/expect-error";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

describe("a mapped file", () => {
  const path = join(temporaryDirectory(), "bytes");
  writeFileSync(path, Uint8Array.of(1, 2, 3, 4, 5));

  test("gives copies of its ranges", () => {
    using file = mapFile(path);
    expect(file.bytes).toBe(5);
    const range = file.read(1, 3);
    expect([...range]).toEqual([2, 3, 4]);
    range[0] = 99;
    expect([...file.read(0, 5)]).toEqual([1, 2, 3, 4, 5]);
    expect(file.read(5, 0)).toHaveLength(0);
  });

  test("refuses what lies outside", () => {
    using file = mapFile(path);
    expectError(() => file.read(3, 3), "native_invalid", path);
    expectError(() => file.read(-1, 2), "native_invalid", path);
  });

  test("may be empty", () => {
    const empty = join(temporaryDirectory(), "empty");
    writeFileSync(empty, "");
    using file = mapFile(empty);
    expect([file.bytes, file.read(0, 0).length]).toEqual([0, 0]);
    expectError(() => file.read(0, 1), "native_invalid", empty);
  });

  test("must exist and be a file", () => {
    expect(() => mapFile(join(temporaryDirectory(), "absent"))).toThrow("ENOENT");
    const folder = temporaryDirectory();
    expectError(() => mapFile(folder), "native_invalid", folder);
  });

  test("may be larger than 4 GiB", () => {
    const sparse = join(temporaryDirectory(), "sparse");
    const offset = 2 ** 32 + 12_345;
    const descriptor = openSync(sparse, "w");
    ftruncateSync(descriptor, 2 ** 32 + 2 ** 20);
    writeSync(descriptor, Uint8Array.of(42, 43), 0, 2, offset);
    closeSync(descriptor);
    expect(statSync(sparse).blocks * 512).toBeLessThan(2 ** 20);
    using file = mapFile(sparse);
    expect(file.bytes).toBe(2 ** 32 + 2 ** 20);
    expect([...file.read(offset - 1, 4)]).toEqual([0, 42, 43, 0]);
    expect([...bytesAt(file.address + offset, 2)]).toEqual([42, 43]);
  });
});

describe("comparing memory", () => {
  test("looks at every byte, over lengths beyond 4 GiB too", () => {
    const a = Uint8Array.of(1, 2, 3);
    const b = Uint8Array.of(1, 2, 4);
    expect(isSameMemory(addressOf(a), addressOf(b), 2)).toBe(true);
    expect(isSameMemory(addressOf(a), addressOf(b), 3)).toBe(false);
    expect(isSameMemory(addressOf(a), addressOf(b), 0)).toBe(true);
  });
});
