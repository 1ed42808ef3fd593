/** Products on every kernel that can take them, whatever the card's table says; and without cuBLASLt. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { searchCublasLt } from "../../ffi/cublaslt";
import { type Device, dtypes } from "../../ffi/device";
import { gatedLinearCases } from "../kernels/cases/gated-linear";
import { runCase } from "../kernels/cases/kernel-case";
import { linearCases } from "../kernels/cases/linear";
import { Buffers } from "../kernels/support/buffers";
import { firstDifference } from "../kernels/support/compare";
import { setCEnvironment } from "../kernels/support/open-device";
import { Random } from "../kernels/support/random";
import { relativeError } from "./support/closeness";
import { hasCard, openCpu, openCuda, testSeed } from "./support/devices";

setDefaultTimeout(60_000); // the oracle of many products

const choices = [
  { title: "without cuBLASLt", options: { cublasLt: undefined }, kernel: undefined },
  { title: "by cuBLASLt", options: {}, kernel: "L" },
  { title: "by narrow blocks", options: {}, kernel: "N" },
  { title: "by wide blocks", options: {}, kernel: "W" },
] as const;

interface ProductShape {
  readonly rows: number;
  readonly outColumns: number;
  readonly inColumns: number;
  /** Type of x and of the weight on the card; the oracle computes in float32. */
  readonly dtype: "float32" | "bfloat16";
  readonly hasResidual?: boolean;
}

/** Normal values that both types hold exactly. */
const pool = new Random(testSeed).normals(2 ** 16 - 1).map((value) => Math.round(value * 32) / 32);

/** From a place in the pool on: drawing each would take longer than the products. */
function exactNormals(count: number, place: number): Float32Array {
  const values = new Float32Array(count);
  for (let i = 0, at = (place * 7919) % pool.length; i < count; i++) {
    values[i] = pool[at] as number;
    at = at + 1 === pool.length ? 0 : at + 1;
  }
  return values;
}

/** The product of random matrices that both types hold exactly, with a float32 result. */
function randomProduct(device: Device, shape: ProductShape): Float32Array {
  const { rows, outColumns, inColumns } = shape;
  const buffers = new Buffers(device);
  const dtype = device.kind === "cpu" ? "float32" : shape.dtype;
  const x = exactNormals(rows * inColumns, rows);
  const weight = exactNormals(outColumns * inColumns, 2 * rows);
  const out = buffers.put(exactNormals(rows * outColumns, 3 * rows));
  device
    .op("linear", {
      x: buffers.putFloats(x, dtype),
      weight: buffers.putWeight(weight, outColumns, inColumns, shape.dtype),
      residual: shape.hasResidual ? out : 0,
      residualStride: shape.hasResidual ? outColumns : 0,
      out,
      xStride: inColumns,
      outStride: outColumns,
      rows,
      inColumns,
      outColumns,
      dtype: dtypes[dtype],
      weightDtype: dtypes[shape.dtype],
      outDtype: dtypes.float32,
    })
    .launch();
  const result = buffers.floats(out, rows * outColumns, "float32");
  buffers.release();
  return result;
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

for (const { title, options, kernel } of choices) {
  describe.skipIf(!hasCard())(`products ${title}`, () => {
    let cuda: Device;
    beforeAll(() => {
      setCEnvironment("GRANARY_PRODUCTS", kernel);
      cuda = openCuda(options);
      setCEnvironment("GRANARY_PRODUCTS", process.env.GRANARY_PRODUCTS);
    });
    afterAll(() => cuda.close());

    test("the library says whether cuBLASLt is there", () => {
      const isGiven =
        !("cublasLt" in options) && searchCublasLt(process.env.GRANARY_CUBLASLT).library !== undefined;
      expect(cuda.info().cublasLtVersion > 0).toBe(isGiven);
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

describe.skipIf(!hasCard())("a library that is not cuBLASLt, on the card,", () => {
  test("counts as absent", () => {
    for (const cublasLt of ["libm.so.6", "/nowhere/libcublasLt.so.13"]) {
      const device = openCuda({ cublasLt });
      expect(device.info().cublasLtVersion).toBe(0);
      device.close();
    }
  });
});

describe.skipIf(!hasCard())("our own product", () => {
  test("gives a row the same bits whatever its company", () => {
    setCEnvironment("GRANARY_PRODUCTS", "W");
    const cuda = openCuda();
    setCEnvironment("GRANARY_PRODUCTS", process.env.GRANARY_PRODUCTS);
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
