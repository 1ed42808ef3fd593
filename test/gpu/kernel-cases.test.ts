/**
 * Every shared kernel case on the card, in both dtypes, against the plain loops. Cases poison their
 * outputs themselves.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Device } from "../../ffi/device";
import { kernelCases } from "../kernels/cases";
import { type ActivationDtype, runCase } from "../kernels/cases/kernel-case";
import { firstDifference } from "../kernels/support/compare";
import { hasCard, openCuda } from "./support/devices";

describe.skipIf(!hasCard())("kernel cases on the card", () => {
  let cuda: Device;
  beforeAll(() => {
    cuda = openCuda();
  });
  afterAll(() => cuda.close());

  for (const kernelCase of kernelCases) {
    for (const dtype of ["float32", "bfloat16"] satisfies ActivationDtype[]) {
      test(`${kernelCase.name} in ${dtype}`, () => {
        const actual = runCase(kernelCase, cuda, dtype);
        const expected = kernelCase.reference(dtype);
        expect(firstDifference(actual, expected, kernelCase.tolerance(dtype))).toBeUndefined();
      });
    }
  }
});
