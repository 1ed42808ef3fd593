/**
 * A kernel case: one op with seeded operands, run on any device and computed again by plain loops in double
 * precision. The CPU library is compared with the loops, another library with the CPU library; launching the
 * rows in pieces tests that a row's result does not depend on its company.
 */
import type { Device } from "../../../ffi/device";

export type ActivationDtype = "float32" | "bfloat16";

/** What an op wrote, by name. Integers are compared exactly, floats within the case's tolerance. */
export type Outputs = Readonly<Record<string, Float32Array | Float64Array | Int32Array | Uint32Array>>;

/** Operands on a device, ready to launch. */
export interface PreparedCase {
  /** Launches rows [begin, end); called over ascending pieces that cover all rows once. */
  launch(begin: number, end: number): void;
  /** Everything that was written, rows of padding and gaps between strides included. */
  outputs(): Outputs;
  release(): void;
}

export interface Tolerance {
  readonly absolute: number;
  readonly relative: number;
}

export interface KernelCase {
  readonly name: string;
  /** Independent rows of the op; 1 when it has none. */
  readonly rows: number;
  prepare(device: Device, dtype: ActivationDtype): PreparedCase;
  /** By plain loops, from operands rounded to the dtypes that the device was given. */
  reference(dtype: ActivationDtype): Outputs;
  tolerance(dtype: ActivationDtype): Tolerance;
}

/**
 * A sum of `terms` products about `magnitude` each, and the rounding of the result to bfloat16 where that is
 * the dtype.
 */
export function sumTolerance(dtype: ActivationDtype, terms: number, magnitude: number): Tolerance {
  const rounding = dtype === "bfloat16" ? 2 ** -8 : 2 ** -22;
  return { absolute: 4e-7 * magnitude * Math.sqrt(terms) + rounding * magnitude, relative: rounding };
}

/** Runs all rows in one launch. */
export function runCase(kernelCase: KernelCase, device: Device, dtype: ActivationDtype): Outputs {
  return runCaseInPieces(kernelCase, device, dtype, [kernelCase.rows]);
}

/** Runs the rows in launches of the given sizes, the last size repeated until all are done. */
export function runCaseInPieces(
  kernelCase: KernelCase,
  device: Device,
  dtype: ActivationDtype,
  sizes: readonly number[],
): Outputs {
  const prepared = kernelCase.prepare(device, dtype);
  try {
    let begin = 0;
    for (let i = 0; begin < kernelCase.rows; i++) {
      const size = sizes[Math.min(i, sizes.length - 1)] as number;
      const end = Math.min(begin + size, kernelCase.rows);
      prepared.launch(begin, end);
      begin = end;
    }
    return prepared.outputs();
  } finally {
    prepared.release();
  }
}
