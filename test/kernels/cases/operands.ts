/** Operands that many cases share: matrices with a gap behind each row, and their mirror on a device. */
import type { Address, Dtype } from "../../../ffi/device";
import { dtypeBytes, dtypes } from "../../../ffi/device";
import { rounded } from "../support/bfloat16";
import type { Random } from "../support/random";

/** Fills what an op must not touch; exact in bfloat16. */
export const untouched = 7.5;

export interface Matrix {
  readonly rows: number;
  readonly columns: number;
  readonly stride: number;
  readonly values: Float32Array;
}

/** Normal values in the columns, `untouched` in the gap. Values are such as the dtype can hold. */
export function randomMatrix(
  random: Random,
  rows: number,
  columns: number,
  { gap = 0, deviation = 1, dtype = "float32" as Dtype } = {},
): Matrix {
  const stride = columns + gap;
  const values = new Float32Array(rows * stride).fill(untouched);
  for (let r = 0; r < rows; r++) values.set(random.normals(columns, deviation), r * stride);
  return { rows, columns, stride, values: rounded(values, dtype) };
}

/** A matrix that an op is to fill. */
export function blankMatrix(rows: number, columns: number, gap = 0): Matrix {
  const stride = columns + gap;
  return { rows, columns, stride, values: new Float32Array(rows * stride).fill(untouched) };
}

export function at(matrix: Matrix, row: number, column: number): number {
  return matrix.values[row * matrix.stride + column] as number;
}

/** Address of a row. */
export function rowAddress(base: Address, row: number, stride: number, dtype: Dtype): Address {
  return base === 0 ? 0 : base + row * stride * dtypeBytes[dtype];
}

/** A matrix in doubles with `untouched` in the gaps, filled element by element. */
export function computeMatrix(
  rows: number,
  columns: number,
  gap: number,
  element: (row: number, column: number) => number,
): Float64Array {
  const stride = columns + gap;
  const out = new Float64Array(rows * stride).fill(untouched);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) out[r * stride + c] = element(r, c);
  }
  return out;
}

export const dtypeNumber = (dtype: Dtype): number => dtypes[dtype];
