/** The experts' products on every kernel that can take them, against the CPU library. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Device } from "../../ffi/device";
import { setCEnvironment } from "../kernels/support/open-device";
import { relativeError } from "./support/closeness";
import { hasCard, openCpu, openCuda, testSeed } from "./support/devices";
import { type ExpertsShape, expertOperands, runExperts } from "./support/experts";

setDefaultTimeout(60_000); // the oracle of many products

const small = { numExperts: 16, topK: 4, hidden: 192, inner: 320, crowd: 0.5, biases: true };
const wide = { numExperts: 5, topK: 2, hidden: 576, inner: 64, crowd: 0, biases: false };
const shapes: readonly ExpertsShape[] = [
  ...[1, 2, 7, 8, 15, 16, 17, 40, 64, 100, 191, 192, 300, 1100, 2100].map((rows) => ({ ...small, rows })),
  ...[1, 31, 32, 33, 119, 120, 700].map((rows) => ({ ...wide, rows })),
  { rows: 20, numExperts: 33, topK: 3, hidden: 64, inner: 128, crowd: 1, biases: true },
  { rows: 513, numExperts: 2, topK: 1, hidden: 128, inner: 192, crowd: 1, biases: true },
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
        expect(relativeError(runExperts(cuda, shape, given), runExperts(cpu, shape, given))).toBeLessThan(
          6e-3,
        );
      });
    }

    test("give a row the same bits whatever its company, as long as the kernel is the same", () => {
      for (const [rows, rowsAtOnce] of [
        [8, 1],
        [300, 20],
        [900, 200],
      ] as const) {
        const shape = { ...small, rows };
        const given = expertOperands(shape, testSeed + shape.rows);
        const together = runExperts(cuda, shape, given);
        expect(runExperts(cuda, shape, given, rowsAtOnce)).toEqual(together);
      }
    });
  });
}
