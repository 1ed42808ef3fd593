/** Products on every kernel that can take them, whatever the card's table says; and without cuBLASLt. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { findCublasLt } from "../../ffi/cublaslt";
import type { Device } from "../../ffi/device";
import { gatedLinearCases } from "../kernels/cases/gated-linear";
import { runCase } from "../kernels/cases/kernel-case";
import { linearCases } from "../kernels/cases/linear";
import { firstDifference } from "../kernels/support/compare";
import { setCEnvironment } from "../kernels/support/open-device";
import { largestRowError, relativeError } from "./support/closeness";
import { hasCard, openCpu, openCuda } from "./support/devices";
import { type ProductShape, randomProduct } from "./support/products";

setDefaultTimeout(60_000); // the oracle of many products

const choices = [
  { title: "without cuBLASLt", usesCublasLt: false, environment: {} },
  { title: "by cuBLASLt", usesCublasLt: true, environment: { GRANARY_PRODUCTS: "L" } },
  { title: "by narrow blocks", usesCublasLt: true, environment: { GRANARY_PRODUCTS: "N" } },
  { title: "by wide blocks", usesCublasLt: true, environment: { GRANARY_PRODUCTS: "W" } },
] as const;

/** A device of a library that reads these variables at its start. */
function openWith(environment: Readonly<Record<string, string>>, usesCublasLt: boolean): Device {
  for (const [name, value] of Object.entries(environment)) setCEnvironment(name, value);
  const device = openCuda({}, usesCublasLt);
  for (const name of Object.keys(environment)) setCEnvironment(name, process.env[name]);
  return device;
}

/** Sizes of small models; with few rows the library's algorithms differ from shape to shape. */
const columnPairs = [
  [128, 512],
  [512, 128],
  [320, 128],
  [1024, 1024],
  [96, 2048],
  [360, 2880], // gpt-oss: no power of two in sight
  [2880, 512],
] as const;

for (const { title, usesCublasLt, environment } of choices) {
  describe.skipIf(!hasCard())(`products ${title}`, () => {
    let cuda: Device;
    beforeAll(() => {
      cuda = openWith(environment, usesCublasLt);
    });
    afterAll(() => cuda.close());

    test("the library says whether cuBLASLt is there", () => {
      const { version } = findCublasLt(process.env.GRANARY_CUBLASLT);
      expect(cuda.info().cublasLtVersion).toBe(usesCublasLt ? version : 0);
    });

    for (const linearCase of [...linearCases, ...gatedLinearCases]) {
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

    test("any number of rows gives the CPU's product in float32", () => {
      const cpu = openCpu();
      for (const rows of [1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 48, 63, 64, 65, 130, 257]) {
        const inColumns = 64 * (1 + (rows % 40));
        const shape: ProductShape = { rows, outColumns: 500 + rows, inColumns, dtype: "bfloat16" };
        expect(relativeError(randomProduct(cuda, shape), randomProduct(cpu, shape))).toBeLessThan(1e-5);
      }
      cpu.close();
    });

    test("every number of rows finds a product, whatever the types and the addend", () => {
      const cpu = openCpu();
      for (const [outColumns, inColumns] of columnPairs) {
        for (let rows = 1; rows <= 40; rows++) {
          for (const hasResidual of [false, true]) {
            const dtype = (rows + Number(hasResidual)) % 4 === 0 ? "bfloat16" : "float32";
            const shape: ProductShape = { rows, outColumns, inColumns, dtype, hasResidual };
            expect(relativeError(randomProduct(cuda, shape), randomProduct(cpu, shape))).toBeLessThan(1e-5);
          }
        }
      }
      cpu.close();
    });
  });
}

for (const environment of [{}, { GRANARY_PORTABLE_KERNELS: "1" }]) {
  const which = Object.keys(environment).length === 0 ? "the card's own" : "portable";
  describe.skipIf(!hasCard())(`products of many rows without cuBLASLt, on ${which} kernels,`, () => {
    test("are the CPU's, with a bias and a residual, however the rows and columns end", () => {
      const [cuda, cpu] = [openWith(environment, false), openCpu()];
      for (const [rows, outColumns, inColumns] of [
        [65, 128, 64],
        [129, 200, 512],
        [300, 257, 192],
        [700, 1030, 128],
        [2000, 2568, 128], // enough tiles for the widest blocks
      ] as const) {
        const shape: ProductShape = { rows, outColumns, inColumns, dtype: "bfloat16" };
        for (const has of [
          {},
          { hasBias: true },
          { hasResidual: true },
          { hasBias: true, hasResidual: true },
        ]) {
          const expected = randomProduct(cpu, { ...shape, ...has });
          for (const outDtype of ["float32", "bfloat16"] as const) {
            const actual = randomProduct(cuda, { ...shape, ...has, outDtype });
            const error = largestRowError(actual, expected, outColumns);
            expect(error).toBeLessThan(outDtype === "float32" ? 1e-5 : 4e-3);
          }
        }
      }
      cuda.close();
      cpu.close();
    });
  });
}

describe.skipIf(!hasCard())("a library that is not cuBLASLt, on the card,", () => {
  test("counts as absent", () => {
    const device = openCuda({}, false);
    expect(() => device.openCublasLt("libm.so.6")).toThrow("libm.so.6 is not cuBLASLt");
    expect(() => device.openCublasLt("/nowhere/libcublasLt.so.13")).toThrow("/nowhere/libcublasLt.so.13");
    expect(device.info().cublasLtVersion).toBe(0);
    device.close();
  });
});

describe.skipIf(!hasCard())("our own product", () => {
  test("gives a row the same bits whatever its company", () => {
    const cuda = openWith({ GRANARY_PRODUCTS: "W" }, true);
    for (const kernelCase of linearCases.filter(({ rows }) => rows > 1 && rows <= 64)) {
      const together = runCase(kernelCase, cuda, "bfloat16");
      const prepared = kernelCase.prepare(cuda, "bfloat16");
      for (let row = 0; row < kernelCase.rows; row++) prepared.launch(row, row + 1);
      expect(prepared.outputs()).toEqual(together);
      prepared.release();
    }
    cuda.close();
  });
});
