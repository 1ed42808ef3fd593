/** Products on a machine without cuBLASLt: the cases of the dense product again, on our own kernel. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Device } from "../../ffi/device";
import { runCase } from "../kernels/cases/kernel-case";
import { linearCases } from "../kernels/cases/linear";
import { firstDifference } from "../kernels/support/compare";
import { setCEnvironment } from "../kernels/support/open-device";
import { hasCard, openCuda } from "./support/devices";

describe.skipIf(!hasCard())("products without cuBLASLt", () => {
  let cuda: Device;
  beforeAll(() => {
    setCEnvironment("GRANARY_CUBLASLT", "/nowhere");
    cuda = openCuda();
    setCEnvironment("GRANARY_CUBLASLT", process.env.GRANARY_CUBLASLT);
  });
  afterAll(() => cuda.close());

  test("the library says that cuBLASLt is absent", () => {
    expect(cuda.info().cublasLtVersion).toBe(0);
  });

  for (const linearCase of linearCases) {
    for (const dtype of ["float32", "bfloat16"] as const) {
      test(`${linearCase.name} in ${dtype}`, () => {
        const difference = firstDifference(
          runCase(linearCase, cuda, dtype),
          linearCase.reference(dtype),
          linearCase.tolerance(dtype),
        );
        expect(difference).toBeUndefined();
      });
    }
  }
});
