/**
 * Cases of granary_linear: odd lengths, several blocks of
 * the length, strides, bias, residual, both weight dtypes.
 */
import type { Dtype } from "../../../ffi/device";
import { rounded } from "../support/bfloat16";
import { Buffers } from "../support/buffers";
import { Random } from "../support/random";
import { type ActivationDtype, type KernelCase, sumTolerance } from "./kernel-case";
import { at, blankMatrix, computeMatrix, dtypeNumber, randomMatrix, rowAddress } from "./operands";

interface LinearShape {
  readonly rows: number;
  readonly inColumns: number;
  readonly outColumns: number;
  readonly weightDtype: Dtype;
  readonly bias?: boolean;
  readonly residual?: "apart" | "in place";
  readonly gap?: number;
}

function operands(shape: LinearShape, dtype: ActivationDtype) {
  const random = new Random(shape.inColumns * 131 + shape.outColumns);
  const { rows, inColumns, outColumns, gap = 0 } = shape;
  return {
    x: randomMatrix(random, rows, inColumns, { gap, dtype }),
    weight: rounded(random.normals(outColumns * inColumns), shape.weightDtype),
    bias: shape.bias ? random.normals(outColumns) : undefined,
    residual: shape.residual ? randomMatrix(random, rows, outColumns, { gap, dtype }) : undefined,
  };
}

function linearCase(shape: LinearShape): KernelCase {
  const { rows, inColumns, outColumns, weightDtype, gap = 0 } = shape;
  const extras = [shape.bias && "bias", shape.residual && `residual ${shape.residual}`, gap > 0 && "strided"];
  return {
    name: ["linear", `${rows}x${inColumns}x${outColumns}`, weightDtype, ...extras.filter(Boolean)].join(" "),
    rows,
    prepare(device, dtype) {
      const { x, weight, bias, residual } = operands(shape, dtype);
      const buffers = new Buffers(device);
      const inPlace = shape.residual === "in place" && residual !== undefined;
      const out = blankMatrix(rows, outColumns, gap);
      const addresses = {
        x: buffers.putFloats(x.values, dtype),
        weight: buffers.putWeight(weight, outColumns, inColumns, weightDtype),
        bias: bias ? buffers.put(bias) : 0,
        residual: residual ? buffers.putFloats(residual.values, dtype) : 0,
        out: buffers.putFloats(inPlace ? residual.values : out.values, dtype),
      };
      const op = device.op("linear", {
        weight: addresses.weight,
        bias: addresses.bias,
        xStride: x.stride,
        residualStride: out.stride,
        outStride: out.stride,
        inColumns,
        outColumns,
        dtype: dtypeNumber(dtype),
        weightDtype: dtypeNumber(weightDtype),
        outDtype: dtypeNumber(dtype),
      });
      return {
        launch(begin, end) {
          const outRow = rowAddress(addresses.out, begin, out.stride, dtype);
          op.set("x", rowAddress(addresses.x, begin, x.stride, dtype));
          op.set("residual", inPlace ? outRow : rowAddress(addresses.residual, begin, out.stride, dtype));
          op.set("out", outRow)
            .set("rows", end - begin)
            .launch();
        },
        outputs: () => ({ out: buffers.floats(addresses.out, rows * out.stride, dtype) }),
        release: () => buffers.release(),
      };
    },
    reference(dtype) {
      const { x, weight, bias, residual } = operands(shape, dtype);
      const out = computeMatrix(rows, outColumns, gap, (r, c) => {
        let sum = 0;
        for (let k = 0; k < inColumns; k++) sum += at(x, r, k) * (weight[c * inColumns + k] as number);
        return sum + (bias?.[c] ?? 0) + (residual ? at(residual, r, c) : 0);
      });
      return { out };
    },
    // A library may round the product before it adds the residual, and then again.
    tolerance: (dtype) => {
      const { absolute, relative } = sumTolerance(dtype, inColumns, 4);
      return { absolute, relative: (shape.residual ? 2 : 1) * relative };
    },
  };
}

export const linearCases: readonly KernelCase[] = [
  linearCase({ rows: 1, inColumns: 1, outColumns: 1, weightDtype: "float32" }),
  linearCase({ rows: 3, inColumns: 17, outColumns: 5, weightDtype: "float32", bias: true, gap: 3 }),
  linearCase({ rows: 7, inColumns: 64, outColumns: 33, weightDtype: "bfloat16", residual: "in place" }),
  linearCase({
    rows: 100,
    inColumns: 300,
    outColumns: 13,
    weightDtype: "float32",
    residual: "apart",
    gap: 5,
  }),
  linearCase({ rows: 1, inColumns: 1024, outColumns: 50, weightDtype: "bfloat16", bias: true }),
  linearCase({
    rows: 13,
    inColumns: 128,
    outColumns: 70,
    weightDtype: "bfloat16",
    bias: true,
    residual: "apart",
    gap: 8,
  }),
  linearCase({ rows: 30, inColumns: 704, outColumns: 48, weightDtype: "bfloat16", residual: "in place" }),
  linearCase({ rows: 64, inColumns: 64, outColumns: 17, weightDtype: "bfloat16", gap: 16 }),
  linearCase({ rows: 100, inColumns: 2100, outColumns: 37, weightDtype: "bfloat16", bias: true }),
  linearCase({
    rows: 100,
    inColumns: 2064,
    outColumns: 30,
    weightDtype: "float32",
    bias: true,
    residual: "apart",
  }),
  linearCase({ rows: 205, inColumns: 96, outColumns: 24, weightDtype: "float32" }),
  // Many rows in the tensor cores' shape, apart from each other: stored four at a time, and one by one.
  linearCase({
    rows: 130,
    inColumns: 192,
    outColumns: 72,
    weightDtype: "bfloat16",
    bias: true,
    residual: "apart",
    gap: 8,
  }),
  linearCase({
    rows: 100,
    inColumns: 64,
    outColumns: 141,
    weightDtype: "bfloat16",
    residual: "in place",
    gap: 8,
  }),
];
