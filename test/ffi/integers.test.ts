/**
 * Integers across the native border, with the signatures that our tables use: what comes back is what went
 * in, in the first calls as after the hundred thousandth, when the caller has been compiled.
 */

import { dlopen, FFIType, type Pointer } from "bun:ffi";
import { describe, expect, test } from "bun:test";
import { openCpuDevice } from "../support/cpu-device";

const { f64, i32, i64, i64_fast: i64Fast, ptr } = FFIType;

const libc = dlopen("libc.so.6", {
  /** Gives back its first argument; with 0 bytes it touches nothing. */
  memcpy: { args: [ptr, ptr, i64], returns: ptr },
  labs: { args: [i64], returns: i64Fast },
  llabs: { args: [i64], returns: i64 },
  abs: { args: [i32], returns: i32 },
});
const libm = dlopen("libm.so.6", { fabs: { args: [f64], returns: f64 } });

const safe = [0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 2 ** 32 - 1, 2 ** 32, 2 ** 52, 2 ** 53 - 1];

/** Calls ten times, then as often as it takes to be compiled, and checks every answer. */
function expectEcho(call: (value: number) => unknown, values: readonly number[]): void {
  for (const repeats of [10, 100_000 / values.length]) {
    let wrong: unknown;
    for (let i = 0; i < repeats; i++) {
      for (const value of values) if (call(value) !== value) wrong = [value, call(value)];
    }
    expect(wrong).toBeUndefined();
  }
}

describe("numbers up to 2^53 arrive whole", () => {
  test("as addresses, with null for 0", () => {
    const something = 1 as Pointer;
    expectEcho((value) => libc.symbols.memcpy(value as Pointer, something, 0) ?? 0, safe);
  });

  test("as 64-bit arguments and results", () => {
    expectEcho((value) => libc.symbols.labs(value), safe);
    expectEcho((value) => libc.symbols.labs(-value), safe);
    expectEcho((value) => Number(libc.symbols.llabs(value)), safe);
  });

  test("as 32-bit arguments and results within their range", () => {
    expectEcho(
      (value) => libc.symbols.abs(value),
      safe.filter((value) => value < 2 ** 31),
    );
  });

  test("as doubles, any of them", () => {
    expectEcho(
      (value) => libm.symbols.fabs(value),
      [...safe, 2 ** 53 + 2, 1.5, 1e300, Number.POSITIVE_INFINITY],
    );
    expect(libm.symbols.fabs(Number.NaN)).toBeNaN();
  });
});

describe("sizes of our own ABI", () => {
  test("travel into the block and out of the call in 64 bits", () => {
    using stack = new DisposableStack();
    const device = openCpuDevice();
    stack.defer(() => device.close());
    const sizes = [1, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 2 ** 32, 2 ** 40 + 1, 2 ** 51 - 1];
    for (const rows of sizes) {
      expect(device.weightBytes({ totalRows: rows, columns: 1, dtype: 0 })).toBe(4 * rows);
      expect(device.weightBytes({ totalRows: rows, columns: 2, dtype: 1 })).toBe(4 * rows);
    }
  });

  test("reach memory beyond 4 GiB", () => {
    using stack = new DisposableStack();
    const device = openCpuDevice();
    stack.defer(() => device.close());
    // Never touched but in two places, so it costs two pages.
    const address = device.allocate(2 ** 32 + 4096, "a wide test");
    stack.defer(() => device.free(address));
    device.upload(address, Uint8Array.of(1));
    device.upload(address + 2 ** 32, Uint8Array.of(2));
    const read = (offset: number) => {
      const byte = new Uint8Array(1);
      device.download(byte, address + offset);
      return byte[0];
    };
    expect([read(0), read(2 ** 32)]).toEqual([1, 2]);
  });
});
