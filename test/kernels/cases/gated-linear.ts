/**
 * Cases of granary_gated_linear: few rows and many, odd
 * widths, strides, bias, both weight dtypes and activations.
 */
import type { Dtype } from "../../../ffi/device";
import { rounded } from "../support/bfloat16";
import { Buffers } from "../support/buffers";
import { Random } from "../support/random";
import { type ActivationDtype, type KernelCase, sumTolerance } from "./kernel-case";
import { at, blankMatrix, computeMatrix, dtypeNumber, randomMatrix, rowAddress } from "./operands";
import { type Activation, activate, activationNumber } from "./rows";

interface GatedShape {
  readonly rows: number;
  readonly inColumns: number;
  readonly columns: number;
  readonly weightDtype: Dtype;
  readonly activation?: Activation;
  readonly bias?: boolean;
  readonly gap?: number;
}

function operands(shape: GatedShape, dtype: ActivationDtype) {
  const random = new Random(shape.inColumns * 37 + shape.columns);
  const { rows, inColumns, columns, gap = 0 } = shape;
  return {
    x: randomMatrix(random, rows, inColumns, { gap, dtype }),
    weight: rounded(random.normals(2 * columns * inColumns, inColumns ** -0.5), shape.weightDtype),
    bias: shape.bias ? random.normals(2 * columns) : undefined,
  };
}

function gatedCase(shape: GatedShape): KernelCase {
  const { rows, inColumns, columns, weightDtype, activation = "silu", gap = 0 } = shape;
  const extras = [activation, shape.bias && "bias", gap > 0 && "strided"].filter(Boolean);
  return {
    name: ["gatedLinear", `${rows}x${inColumns}x${columns}`, weightDtype, ...extras].join(" "),
    rows,
    prepare(device, dtype) {
      const { x, weight, bias } = operands(shape, dtype);
      const buffers = new Buffers(device);
      const out = blankMatrix(rows, columns, gap);
      const xAddress = buffers.putFloats(x.values, dtype);
      const outAddress = buffers.putFloats(out.values, dtype);
      const op = device.op("gatedLinear", {
        weight: buffers.putWeight(weight, 2 * columns, inColumns, weightDtype),
        bias: bias ? buffers.put(bias) : 0,
        gateUp: buffers.allocate(rows * 2 * columns * 4),
        xStride: x.stride,
        gateUpStride: 2 * columns,
        outStride: out.stride,
        inColumns,
        columns,
        activation: activationNumber(activation),
        dtype: dtypeNumber(dtype),
        weightDtype: dtypeNumber(weightDtype),
      });
      return {
        launch(begin, end) {
          op.set("x", rowAddress(xAddress, begin, x.stride, dtype));
          op.set("out", rowAddress(outAddress, begin, out.stride, dtype));
          op.set("rows", end - begin).launch();
        },
        outputs: () => ({ out: buffers.floats(outAddress, rows * out.stride, dtype) }),
        release: () => buffers.release(),
      };
    },
    reference(dtype) {
      const { x, weight, bias } = operands(shape, dtype);
      const product = (r: number, c: number) => {
        let sum = bias?.[c] ?? 0;
        for (let k = 0; k < inColumns; k++) sum += at(x, r, k) * (weight[c * inColumns + k] as number);
        return sum;
      };
      const out = computeMatrix(
        rows,
        columns,
        gap,
        (r, c) => activate(activation, product(r, c)) * product(r, columns + c),
      );
      return { out };
    },
    // Gate and up are rounded on their way where they are two products.
    tolerance: (dtype) => {
      const { absolute, relative } = sumTolerance(dtype, inColumns, 4);
      return { absolute, relative: 4 * relative };
    },
  };
}

export const gatedLinearCases: readonly KernelCase[] = [
  gatedCase({ rows: 1, inColumns: 1, columns: 1, weightDtype: "float32" }),
  gatedCase({ rows: 3, inColumns: 128, columns: 19, weightDtype: "bfloat16", bias: true, gap: 8 }),
  gatedCase({ rows: 12, inColumns: 64, columns: 32, weightDtype: "bfloat16", activation: "geluTanh" }),
  gatedCase({ rows: 33, inColumns: 1088, columns: 40, weightDtype: "bfloat16" }),
  gatedCase({ rows: 100, inColumns: 77, columns: 21, weightDtype: "float32", bias: true }),
];
