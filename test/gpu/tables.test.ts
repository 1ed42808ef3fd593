/** The ops without arithmetic, and weights: bit for bit what the CPU library leaves behind. */

import { ptr } from "bun:ffi";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Device, type Dtype, dtypes } from "../../ffi/device";
import { Buffers } from "../kernels/support/buffers";
import { Random } from "../kernels/support/random";
import { hasCard, openCpu, openCuda, testSeed } from "./support/devices";

/**
 * Fields of one buffer: base, stride and payload in bytes, none of them a multiple of anything wide in
 * the second.
 */
const fieldShapes = [
  { offset: 0, stride: 4096, payload: 4096 },
  { offset: 100_003, stride: 777, payload: 513 },
];

function packFields(base: number): BigInt64Array {
  const fields = fieldShapes.map(({ offset, stride, payload }) => [base + offset, stride, payload]);
  return BigInt64Array.from(fields.flat(), (value) => BigInt(value));
}

const bytesOfFields = 110_000 + 777 * 20;

describe.skipIf(!hasCard())("tables, blocks and weights on the card", () => {
  let cuda: Device;
  let cpu: Device;
  beforeAll(() => {
    cuda = openCuda();
    cpu = openCpu();
  });
  afterAll(() => {
    cuda.close();
    cpu.close();
  });

  /** Runs the same thing on both devices and expects the same bytes. */
  function expectSame(run: (device: Device, buffers: Buffers) => NodeJS.TypedArray): void {
    const results = [cuda, cpu].map((device) => {
      const buffers = new Buffers(device);
      const result = run(device, buffers);
      buffers.release();
      return result;
    });
    expect(results[0]).toEqual(results[1] as NodeJS.TypedArray);
  }

  test("a scatter leaves the last of several values for one index", () => {
    const random = new Random(testSeed);
    const count = 5000;
    const indices = random.integers(count, 0, 300);
    const values = random.integers(count, -5, 1_000_000);
    expectSame((device, buffers) => {
      const table = buffers.put(new Int32Array(301).fill(-9));
      const operands = { table, indices: buffers.put(indices), values: buffers.put(values) };
      device.op("scatter", { ...operands, count }).launch();
      return buffers.int32s(table, 301);
    });
  });

  test("negative ids become the tokens of their slots", () => {
    expectSame((device, buffers) => {
      const ids = buffers.put(Int32Array.of(5, -1, 0, -3, -2, 9));
      const lastTokens = buffers.put(Int32Array.of(100, 200, 300));
      device.op("resolveTokens", { ids, lastTokens, rows: 6, numSlots: 3 }).launch();
      return buffers.int32s(ids, 6);
    });
  });

  test("counts mark prompt tokens, add output tokens and start anew when asked", () => {
    const ids = new Random(testSeed).integers(3000, 0, 49);
    expectSame((device, buffers) => {
      const counts = buffers.put(new Uint32Array(3 * 50).fill(4));
      const op = device.op("countTokens", {
        counts,
        ids: buffers.put(ids),
        slot: 1,
        vocab: 50,
        numIds: 3000,
        numPrompt: 40,
        clear: 1,
      });
      op.launch();
      op.set("slot", 2).set("clear", 0).launch();
      return buffers.get(counts, new Uint32Array(3 * 50));
    });
  });

  test("blocks are cleared and copied field by field, and nothing beside them", () => {
    const bytes = Uint8Array.from({ length: bytesOfFields }, (_, i) => (i * 31) % 251);
    expectSame((device, buffers) => {
      const source = buffers.put(bytes);
      const destination = buffers.put(bytes.map((byte) => byte ^ 0x5a));
      const fields = buffers.put(packFields(destination));
      device
        .op("copyBlocks", {
          sources: buffers.put(packFields(source)),
          destinations: fields,
          sourceIds: buffers.put(Int32Array.of(1, 4, 7)),
          destinationIds: buffers.put(Int32Array.of(2, 3, 11)),
          numFields: 2,
          numIds: 3,
        })
        .launch();
      const ids = buffers.put(Int32Array.of(0, 5, 12));
      device.op("zeroBlocks", { fields, ids, numFields: 2, numIds: 3 }).launch();
      return buffers.get(destination, new Uint8Array(bytesOfFields));
    });
  });

  test("the best log-probabilities come in order, ties to the lower id, with the rank of the chosen", () => {
    const rows = 5;
    const columns = 3000;
    const logprobs = new Random(testSeed).normals(rows * columns).map((value) => Math.round(value * 50) / 50);
    for (const k of [0, 1, 20]) {
      expectSame((device, buffers) => {
        const ids = buffers.allocate(rows * 20 * 4);
        const values = buffers.allocate(rows * 20 * 4);
        const chosenValues = buffers.allocate(rows * 4);
        const chosenRanks = buffers.allocate(rows * 4);
        device
          .op("topLogprobs", {
            logprobs: buffers.put(logprobs),
            chosen: buffers.put(Int32Array.of(0, -1, 2999, 17, 1234)),
            ids: k > 0 ? ids : 0,
            values: k > 0 ? values : 0,
            chosenValues,
            chosenRanks,
            logprobsStride: columns,
            rows,
            columns,
            k,
          })
          .launch();
        return Float32Array.of(
          ...buffers.int32s(ids, rows * k),
          ...buffers.floats(values, rows * k, "float32"),
          ...buffers.floats(chosenValues, rows, "float32"),
          ...buffers.int32s(chosenRanks, rows),
        );
      });
    }
  });

  const part = {
    sourceStride: 90,
    sourceRow: 2,
    sourceColumn: 5,
    rows: 33,
    columns: 70,
    row: 4,
    totalRows: 40,
  };
  const readWeight = (buffers: Buffers, prepared: number, dtype: Dtype) =>
    buffers.floats(prepared + 4 * 70 * (dtype === "bfloat16" ? 2 : 4), 33 * 70, dtype);

  for (const dtype of ["float32", "bfloat16"] as const) {
    test(`synthetic weights in ${dtype} are those of the definition`, () => {
      const seeds = { a: 0xdeadbeef, b: 12345, scale: 0.02, offset: 1, firstElement: 2 ** 32 - 500 };
      const buffers = new Buffers(cuda);
      const prepared = buffers.allocate(40 * 70 * 4);
      cuda.synthesize({ ...part, ...seeds, prepared, dtype: dtypes[dtype] });
      const mix = (x: number) => {
        let y = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
        y = Math.imul(y ^ (y >>> 15), 0x735a2d97);
        return (y ^ (y >>> 15)) >>> 0;
      };
      const float = new Float32Array(1);
      const bits = new Uint32Array(float.buffer);
      const expected = Float32Array.from({ length: 33 * 70 }, (_, i) => {
        const element = seeds.firstElement + (2 + Math.floor(i / 70)) * 90 + 5 + (i % 70);
        const h = mix((mix((element ^ seeds.a) >>> 0) + seeds.b) >>> 0);
        const x = ((h >>> 8) + 0.5) / 2 ** 23 - 1;
        float[0] = seeds.offset + seeds.scale * Math.sqrt(3) * x;
        bits[0] = ((bits[0] as number) + 0x7fff + (((bits[0] as number) >>> 16) & 1)) & 0xffff0000;
        return float[0];
      });
      expect(readWeight(buffers, prepared, dtype)).toEqual(expected);
      buffers.release();
    });

    test(`a part of a host matrix of any dtype becomes rows of a weight in ${dtype}`, () => {
      const random = new Random(testSeed);
      const sources: [number, NodeJS.TypedArray, (i: number) => number][] = [];
      const floats = random.normals(40 * 90).map((value) => Math.round(value * 64) / 64);
      sources.push([dtypes.float32, floats, (i) => floats[i] as number]);
      const halves = new Float16Array(floats);
      sources.push([dtypes.float16, halves, (i) => halves[i] as number]);
      for (const [sourceDtype, source, valueAt] of sources) {
        const buffers = new Buffers(cuda);
        const prepared = buffers.allocate(40 * 70 * 4);
        cuda.prepareWeight({ ...part, prepared, sourceDtype, dtype: dtypes[dtype], hostSource: ptr(source) });
        const expected = Float32Array.from({ length: 33 * 70 }, (_, i) =>
          valueAt((2 + Math.floor(i / 70)) * 90 + 5 + (i % 70)),
        );
        expect(readWeight(buffers, prepared, dtype)).toEqual(expected);
        buffers.release();
      }
    });
  }

  test("page-locked memory goes to the device and back, and timing events say how long it took", () => {
    const bytes = 1 << 20;
    const pinned = cuda.allocatePinned(2 * bytes, "a test");
    const address = cuda.allocate(bytes, "a test");
    const host = new Uint8Array(pinned.memory);
    expect(host.length).toBe(2 * bytes);
    for (let i = 0; i < bytes; i++) host[i] = i % 253;
    const begin = cuda.createEvent(true);
    const end = cuda.createEvent(true);
    cuda.recordEvent(begin);
    cuda.copy(address, pinned.address, bytes, "hostToDevice");
    cuda.copy(pinned.address + bytes, address, bytes, "deviceToHost");
    cuda.recordEvent(end);
    cuda.waitEvent(end);
    expect(cuda.isEventDone(end)).toBe(true);
    expect(Buffer.compare(host.subarray(0, bytes), host.subarray(bytes))).toBe(0);
    expect(cuda.elapsedNs(begin, end)).toBeGreaterThan(1000);
    cuda.destroyEvent(begin);
    cuda.destroyEvent(end);
    cuda.free(address);
    cuda.freePinned(pinned.address);
  });

  test("memory comes zero-filled and aligned to 256 bytes, and a shortage names the asker", () => {
    const first = cuda.allocate(5000, "a test");
    cuda.upload(first, new Uint8Array(5000).fill(7));
    cuda.free(first);
    const second = cuda.allocate(5000, "a test");
    const read = new Uint8Array(5000).fill(1);
    cuda.download(read, second);
    expect(read.every((byte) => byte === 0)).toBe(true);
    expect(second % 256).toBe(0);
    cuda.free(second);
    expect(() => cuda.allocate(2 ** 45, "the moon")).toThrow("the moon");
    cuda.synchronize();
  });
});
