/** One dense product: its shape, operands from the run's seed, and a run on a device. */
import { type Device, dtypes } from "../../../ffi/device";
import { Buffers } from "../../kernels/support/buffers";
import { Random } from "../../kernels/support/random";
import { testSeed } from "./devices";

export interface ProductShape {
  readonly rows: number;
  readonly outColumns: number;
  readonly inColumns: number;
  /** Type of x and of the weight on the card; the oracle computes in float32. */
  readonly dtype: "float32" | "bfloat16";
  readonly hasResidual?: boolean;
  readonly hasBias?: boolean;
  /** Of the card's result; float32 unless given. */
  readonly outDtype?: "float32" | "bfloat16";
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

/** The product of random matrices that both types hold exactly; the CPU's is in float32. */
export function randomProduct(device: Device, shape: ProductShape): Float32Array {
  const { rows, outColumns, inColumns } = shape;
  const buffers = new Buffers(device);
  const dtype = device.kind === "cpu" ? "float32" : shape.dtype;
  const outDtype = device.kind === "cpu" ? "float32" : (shape.outDtype ?? "float32");
  const x = exactNormals(rows * inColumns, rows);
  const weight = exactNormals(outColumns * inColumns, 2 * rows);
  const out = buffers.putFloats(exactNormals(rows * outColumns, 3 * rows), outDtype);
  device
    .op("linear", {
      x: buffers.putFloats(x, dtype),
      weight: buffers.putWeight(weight, outColumns, inColumns, shape.dtype),
      bias: shape.hasBias ? buffers.put(exactNormals(outColumns, 4 * rows)) : 0,
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
      outDtype: dtypes[outDtype],
    })
    .launch();
  const result = buffers.floats(out, rows * outColumns, outDtype);
  buffers.release();
  return result;
}
