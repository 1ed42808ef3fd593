/**
 * Cases of granary_rms_norm: with and without residual, in place, both weight dtypes, weights stored less
 * one.
 */
import type { Dtype } from "../../../ffi/device";
import { rounded } from "../support/bfloat16";
import { Buffers } from "../support/buffers";
import { Random } from "../support/random";
import type { ActivationDtype, KernelCase, Tolerance } from "./kernel-case";
import { at, blankMatrix, computeMatrix, dtypeNumber, randomMatrix, rowAddress } from "./operands";

interface RmsNormShape {
  readonly columns: number;
  readonly residual?: boolean;
  readonly inPlace?: boolean;
  readonly gap?: number;
  readonly weightDtype?: Dtype;
  readonly weightOffset?: number;
}

const rows = 100;
const eps = 1e-6;

/** A normed value is of order one; bfloat16 rounds it, and the residual before it. */
export const normTolerance = (dtype: ActivationDtype): Tolerance =>
  dtype === "bfloat16" ? { absolute: 1e-2, relative: 1e-2 } : { absolute: 2e-6, relative: 2e-6 };

function rmsNormCase(shape: RmsNormShape): KernelCase {
  const { columns, gap = 0, weightOffset = 0, inPlace = false } = shape;
  const weightDtype = shape.weightDtype ?? "float32";
  const operands = (dtype: ActivationDtype) => {
    const random = new Random(columns + 7);
    return {
      x: randomMatrix(random, rows, columns, { gap, dtype, deviation: 3 }),
      residual: shape.residual ? randomMatrix(random, rows, columns, { gap, dtype }) : undefined,
      weight: rounded(random.normals(columns), weightDtype),
    };
  };
  return {
    name: `rmsNorm ${JSON.stringify(shape)}`,
    rows,
    prepare(device, dtype) {
      const { x, residual, weight } = operands(dtype);
      const buffers = new Buffers(device);
      const xAddress = buffers.putFloats(x.values, dtype);
      const residualAddress = residual ? buffers.putFloats(residual.values, dtype) : 0;
      const out = inPlace ? xAddress : buffers.putFloats(blankMatrix(rows, columns, gap).values, dtype);
      const op = device.op("rmsNorm", {
        weight: buffers.putFloats(weight, weightDtype),
        xStride: x.stride,
        residualStride: x.stride,
        outStride: x.stride,
        columns,
        dtype: dtypeNumber(dtype),
        weightDtype: dtypeNumber(weightDtype),
        eps,
        weightOffset,
      });
      return {
        launch(begin, end) {
          op.set("x", rowAddress(xAddress, begin, x.stride, dtype));
          op.set("residual", rowAddress(residualAddress, begin, x.stride, dtype));
          op.set("out", rowAddress(out, begin, x.stride, dtype));
          op.set("rows", end - begin).launch();
        },
        outputs: () => ({
          out: buffers.floats(out, rows * x.stride, dtype),
          ...(residual && { residual: buffers.floats(residualAddress, rows * x.stride, dtype) }),
        }),
        release: () => buffers.release(),
      };
    },
    reference(dtype) {
      const { x, residual, weight } = operands(dtype);
      const y = (r: number, c: number) => at(x, r, c) + (residual ? at(residual, r, c) : 0);
      const factors = Array.from({ length: rows }, (_, r) => {
        let sum = 0;
        for (let c = 0; c < columns; c++) sum += y(r, c) ** 2;
        return 1 / Math.sqrt(sum / columns + eps);
      });
      const out = computeMatrix(
        rows,
        columns,
        gap,
        (r, c) => y(r, c) * (factors[r] as number) * ((weight[c] as number) + weightOffset),
      );
      return residual ? { out, residual: computeMatrix(rows, columns, gap, y) } : { out };
    },
    tolerance: normTolerance,
  };
}

export const rmsNormCases: readonly KernelCase[] = [
  rmsNormCase({ columns: 1 }),
  rmsNormCase({ columns: 33, residual: true, gap: 7 }),
  rmsNormCase({ columns: 128, inPlace: true, weightDtype: "bfloat16" }),
  rmsNormCase({ columns: 250, residual: true, inPlace: true, gap: 6, weightOffset: 1 }),
];
