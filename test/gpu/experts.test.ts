/** The experts' products on every kernel that can take them, against the CPU library. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Device } from "../../ffi/device";
import { setCEnvironment } from "../kernels/support/open-device";
import { largestRowError } from "./support/closeness";
import { hasCard, openCpu, openCuda, testSeed } from "./support/devices";
import { type ExpertsShape, expertOperands, runExperts } from "./support/experts";

setDefaultTimeout(60_000); // the oracle of many products

const plain = { crowd: 0, biases: false, residual: false, activation: "silu", gap: 0 } as const;
const all = { crowd: 0.5, biases: true, residual: true, activation: "geluTanh", gap: 8 } as const;
const small = { ...all, numExperts: 16, topK: 4, hidden: 192, inner: 320 };
const wide = { ...plain, numExperts: 5, topK: 2, hidden: 576, inner: 64 };
/** All rows take expert 0. */
const crowded = { ...all, crowd: 1, hidden: 64, inner: 128 };
const shapes: readonly ExpertsShape[] = [
  ...[1, 2, 7, 8, 9, 16, 17, 40, 64, 100, 191, 192, 300, 1100, 2100].map((rows) => ({ ...small, rows })),
  ...[1, 15, 16, 17, 31, 32, 119, 120, 700].map((rows) => ({ ...wide, rows })),
  ...[9, 16, 17, 32, 33].map((rows) => ({ ...crowded, rows, numExperts: 5, topK: 1 })),
  ...[10, 16, 20].map((rows) => ({ ...crowded, rows, numExperts: 33, topK: 2, residual: false })),
  { ...crowded, rows: 513, numExperts: 2, topK: 1, inner: 192 },
  { ...all, rows: 3, numExperts: 4, topK: 2, hidden: 2112, inner: 1088 },
  { ...plain, rows: 600, numExperts: 300, topK: 8, hidden: 64, inner: 64 },
];

for (const isPortable of [false, true]) {
  describe.skipIf(!hasCard())(`experts on ${isPortable ? "portable" : "the card's own"} kernels`, () => {
    let cuda: Device;
    let cpu: Device;
    beforeAll(() => {
      setCEnvironment("GRANARY_PORTABLE_KERNELS", isPortable ? "1" : undefined);
      cuda = openCuda();
      setCEnvironment("GRANARY_PORTABLE_KERNELS", process.env.GRANARY_PORTABLE_KERNELS);
      cpu = openCpu();
    });
    afterAll(() => {
      cuda.close();
      cpu.close();
    });

    for (const shape of shapes) {
      test(`give the CPU's answer to ${JSON.stringify(shape)}`, () => {
        const given = expertOperands(shape, testSeed + shape.rows);
        const [actual, expected] = [cuda, cpu].map((device) => runExperts(device, shape, given));
        expect(largestRowError(actual as Float32Array, expected as Float32Array, shape.hidden)).toBeLessThan(
          0.012,
        );
      });
    }

    test("give a row the same bits whatever its company: up to 32 assignments, and from there on", () => {
      for (const [shape, rowsAtOnce] of [
        [{ ...small, rows: 8 }, 1],
        [{ ...small, rows: 300 }, 20],
        [{ ...small, rows: 900 }, 200],
        [{ ...small, rows: 100, hidden: 40, inner: 24 }, 1], // of no tensor core's shape
      ] as const) {
        const given = expertOperands(shape, testSeed + shape.rows);
        const together = runExperts(cuda, shape, given);
        expect(runExperts(cuda, shape, given, rowsAtOnce)).toEqual(together);
      }
    });
  });
}
