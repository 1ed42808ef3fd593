/** Every kernel of the CPU library against plain loops in double precision. */
import { afterAll, describe, expect, test } from "bun:test";
import { kernelCases } from "./cases";
import { runCase } from "./cases/kernel-case";
import { firstDifference } from "./support/compare";
import { loadCpuLibrary, openCpuDevice } from "./support/open-device";

const library = await loadCpuLibrary();
const device = openCpuDevice(library, { numThreads: 2, debugChecks: true });
afterAll(() => device.close());

describe("the CPU library agrees with double precision", () => {
  for (const kernelCase of kernelCases) {
    test(kernelCase.name, () => {
      const actual = runCase(kernelCase, device, "float32");
      expect(
        firstDifference(actual, kernelCase.reference("float32"), kernelCase.tolerance("float32")),
      ).toBeUndefined();
    });
  }
});
