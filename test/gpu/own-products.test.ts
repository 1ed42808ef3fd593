/** Products on every kernel that can take them, whatever the card's table says; and without cuBLASLt. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Device, dtypes } from "../../ffi/device";
import { gatedLinearCases } from "../kernels/cases/gated-linear";
import { runCase } from "../kernels/cases/kernel-case";
import { linearCases } from "../kernels/cases/linear";
import { moeCases } from "../kernels/cases/moe";
import { Buffers } from "../kernels/support/buffers";
import { firstDifference } from "../kernels/support/compare";
import { setCEnvironment } from "../kernels/support/open-device";
import { Random } from "../kernels/support/random";
import { relativeError } from "./support/closeness";
import { hasCard, openCpu, openCuda, testSeed } from "./support/devices";

const environments = [
  { title: "without cuBLASLt", name: "GRANARY_CUBLASLT", value: "/nowhere" },
  { title: "by cuBLASLt", name: "GRANARY_PRODUCTS", value: "L" },
  { title: "by narrow blocks", name: "GRANARY_PRODUCTS", value: "N" },
  { title: "by wide blocks", name: "GRANARY_PRODUCTS", value: "W" },
] as const;

/** The product of random matrices in bfloat16 with a float32 result. */
function randomProduct(device: Device, rows: number, outColumns: number, inColumns: number): Float32Array {
  const random = new Random(testSeed + rows);
  const buffers = new Buffers(device);
  const isCpu = device.kind === "cpu";
  const x = random.normals(rows * inColumns).map((value) => Math.round(value * 32) / 32);
  const weight = random.normals(outColumns * inColumns).map((value) => Math.round(value * 32) / 32);
  const out = buffers.allocate(rows * outColumns * 4);
  device
    .op("linear", {
      x: buffers.putFloats(x, isCpu ? "float32" : "bfloat16"),
      weight: buffers.putWeight(weight, outColumns, inColumns, "bfloat16"),
      out,
      xStride: inColumns,
      outStride: outColumns,
      rows,
      inColumns,
      outColumns,
      dtype: isCpu ? dtypes.float32 : dtypes.bfloat16,
      weightDtype: dtypes.bfloat16,
      outDtype: dtypes.float32,
    })
    .launch();
  const result = buffers.floats(out, rows * outColumns, "float32");
  buffers.release();
  return result;
}

for (const { title, name, value } of environments) {
  describe.skipIf(!hasCard())(`products ${title}`, () => {
    let cuda: Device;
    beforeAll(() => {
      const before = process.env[name];
      setCEnvironment(name, value);
      cuda = openCuda();
      setCEnvironment(name, before);
    });
    afterAll(() => cuda.close());

    test("the library says whether cuBLASLt is there", () => {
      if (name === "GRANARY_CUBLASLT") expect(cuda.info().cublasLtVersion).toBe(0);
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
        const shape = [rows, 500 + rows, 64 * (1 + (rows % 40))] as const;
        const error = relativeError(randomProduct(cuda, ...shape), randomProduct(cpu, ...shape));
        expect(error).toBeLessThan(1e-5);
      }
      cpu.close();
    });
  });
}

describe.skipIf(!hasCard())("our own product", () => {
  test("gives a row the same bits whatever its company", () => {
    setCEnvironment("GRANARY_PRODUCTS", "W");
    const cuda = openCuda();
    setCEnvironment("GRANARY_PRODUCTS", process.env.GRANARY_PRODUCTS);
    const products = linearCases.filter(({ rows }) => rows > 1 && rows <= 64);
    for (const kernelCase of [...products, ...moeCases]) {
      const together = runCase(kernelCase, cuda, "bfloat16");
      const prepared = kernelCase.prepare(cuda, "bfloat16");
      for (let row = 0; row < kernelCase.rows; row++) prepared.launch(row, row + 1);
      expect(prepared.outputs()).toEqual(together);
      prepared.release();
    }
    cuda.close();
  });
});
