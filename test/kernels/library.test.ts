/** The CPU library around its ops: initialisation, memory, copies, events, and what it refuses. */
import { ptr } from "bun:ffi";
import { afterEach, describe, expect, test } from "bun:test";
import type { Device } from "../../ffi/device";
import {
  availableInstructionSets,
  loadCpuLibrary,
  openCpuDevice,
  setCEnvironment,
} from "./support/open-device";

const library = await loadCpuLibrary();
let device: Device | undefined;

const open = (...options: Parameters<typeof openCpuDevice> extends [unknown, ...infer R] ? R : never) => {
  device = openCpuDevice(library, ...options);
  return device;
};

afterEach(() => {
  device?.close();
  device = undefined;
});

describe("initialisation", () => {
  test("may follow a shutdown, with other threads and another instruction set", () => {
    for (const isa of availableInstructionSets(library)) {
      for (const numThreads of [1, 3, 2]) {
        const opened = open({ numThreads, isa });
        expect(opened.info().numMultiprocessors).toBe(numThreads);
        expect(opened.info().features.split(" ").includes("avx512f")).toBe(isa === "avx512");
        opened.close();
        device = undefined;
      }
    }
  });

  test("may not happen twice", () => {
    open();
    expect(() => openCpuDevice(library)).toThrow("initialised already");
  });

  test("refuses a device that is not there and a thread count of none", () => {
    expect(() => openCpuDevice(library, { numThreads: 0 })).toThrow("numThreads");
    expect(library.core.granary_probe(0)).toBe(0);
    expect(library.core.granary_probe(1)).toBe(2);
    expect(library.lastError()).toContain("deviceOrdinal is 1");
  });

  test("refuses an instruction set that does not exist, in one line", () => {
    setCEnvironment("GRANARY_CPU_ISA", "mmx");
    expect(library.core.granary_probe(0)).toBe(2);
    setCEnvironment("GRANARY_CPU_ISA", undefined);
    expect(library.lastError()).toBe("probe: GRANARY_CPU_ISA is neither avx2 nor avx512");
  });

  test("must come before any op", () => {
    expect(library.core.granary_synchronize()).toBe(1);
    expect(library.lastError()).toContain("granary_init has not been called");
    expect(Number(library.core.granary_alloc(64) ?? 0)).toBe(0);
  });

  test("tells the machine", () => {
    const info = open().info();
    expect(info.name.length).toBeGreaterThan(0);
    expect(info.totalBytes).toBeGreaterThan(2 ** 28);
    expect(info.freeBytes).toBeLessThanOrEqual(info.totalBytes);
    expect(info.features.split(" ")).toContain("fma");
  });
});

describe("memory", () => {
  test("is zero, aligned to 256 bytes, and may be larger than 4 GiB", () => {
    const bytes = 5 * 2 ** 30;
    const address = open().allocate(bytes, "a test");
    expect(address % 256).toBe(0);
    const bytesThere = new Uint8Array(16).fill(1);
    device?.download(bytesThere, address + bytes - 16);
    expect(bytesThere).toEqual(new Uint8Array(16));
    device?.upload(address + bytes - 16, new Uint8Array(16).fill(9));
    device?.download(bytesThere, address + bytes - 16);
    expect(bytesThere[0]).toBe(9);
    device?.free(address);
  });

  test("is refused when there is not so much", () => {
    expect(() => open().allocate(2 ** 50, "a test")).toThrow("no room for a test");
  });

  test("is given back once", () => {
    const address = open().allocate(100, "a test");
    device?.free(address);
    expect(() => device?.free(address)).toThrow("not allocated here");
  });

  test("is copied between host and device, pinned or not, and within", () => {
    const opened = open();
    const pinned = opened.allocatePinned(64, "a test");
    const address = opened.allocate(128, "a test");
    new Uint8Array(pinned.memory).fill(3);
    opened.copy(address, pinned.address, 64, "hostToDevice");
    opened.copy(address + 64, address, 64, "deviceToDevice");
    const back = new Uint8Array(128);
    opened.copy(ptr(back), address, 128, "deviceToHost");
    expect(back).toEqual(new Uint8Array(128).fill(3));
    opened.freePinned(pinned.address);
    opened.free(address);
  });
});

describe("events and graphs", () => {
  test("an event is done as soon as it is recorded, and time passes between two", async () => {
    const opened = open();
    const [begin, end] = [opened.createEvent(true), opened.createEvent(true)];
    opened.recordEvent(begin);
    await Bun.sleep(2);
    opened.recordEvent(end);
    expect(opened.isEventDone(end)).toBe(true);
    opened.waitEvent(end);
    expect(opened.elapsedNs(begin, end)).toBeGreaterThan(1e6);
    opened.destroyEvent(begin);
    opened.destroyEvent(end);
  });

  test("there are no graphs", () => {
    expect(() => open().capture(() => {})).toThrow("no graphs");
  });
});
