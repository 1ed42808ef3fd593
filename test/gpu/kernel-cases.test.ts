/** Every shared kernel case on the card, in both dtypes, against the plain loops. Cases poison their outputs themselves. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Device } from "../../ffi/device";
import { type ActivationDtype, type KernelCase, runCase } from "../kernels/cases/kernel-case";
import { firstDifference } from "../kernels/support/compare";
import { hasCard, openCuda } from "./support/devices";

const casesFolder = join(import.meta.dir, "../kernels/cases");

const isKernelCase = (value: unknown): value is KernelCase =>
  typeof value === "object" && value !== null && "prepare" in value && "reference" in value;

/** Whatever lists of cases the modules of the folder export. */
async function loadCases(): Promise<readonly KernelCase[]> {
  const modules = readdirSync(casesFolder).filter((name) => name.endsWith(".ts"));
  const found: KernelCase[] = [];
  for (const name of modules.sort()) {
    const exported: Record<string, unknown> = await import(join(casesFolder, name));
    for (const value of Object.values(exported)) {
      if (Array.isArray(value)) found.push(...value.filter(isKernelCase));
    }
  }
  return found;
}

const cases = hasCard() ? await loadCases() : [];

describe.skipIf(!hasCard())("kernel cases on the card", () => {
  let cuda: Device;
  beforeAll(() => {
    cuda = openCuda();
  });
  afterAll(() => cuda.close());

  test("are found", () => {
    expect(cases.length).toBeGreaterThan(10);
  });

  for (const kernelCase of cases) {
    for (const dtype of ["float32", "bfloat16"] satisfies ActivationDtype[]) {
      test(`${kernelCase.name} in ${dtype}`, () => {
        const actual = runCase(kernelCase, cuda, dtype);
        const expected = kernelCase.reference(dtype);
        expect(firstDifference(actual, expected, kernelCase.tolerance(dtype))).toBeUndefined();
      });
    }
  }
});
