/** Mixtures of experts of any shape on a device, from seeded operands that bfloat16 holds exactly. */
import { type Device, dtypes } from "../../../ffi/device";
import { activationNumber } from "../../kernels/cases/rows";
import { rounded } from "../../kernels/support/bfloat16";
import { Buffers } from "../../kernels/support/buffers";
import { Random } from "../../kernels/support/random";

export interface ExpertsShape {
  readonly rows: number;
  readonly numExperts: number;
  readonly topK: number;
  readonly hidden: number;
  readonly inner: number;
  /** Part of the rows whose first choice is expert 0. */
  readonly crowd: number;
  readonly biases: boolean;
  readonly residual: boolean;
  readonly activation: "silu" | "geluTanh";
  /** Elements behind each row of x, residual and out. */
  readonly gap: number;
}

/** What stands in the output, gaps included, before it is written. */
const poison = 1000;

/** Values that bfloat16 holds exactly. */
const exact = (values: Float32Array) => rounded(values, "bfloat16");

function chooseExperts(random: Random, { rows, numExperts, topK, crowd }: ExpertsShape): Int32Array {
  const ids = new Int32Array(rows * topK);
  for (let row = 0; row < rows; row++) {
    const others = random.permutation(numExperts);
    const first = random.next() < crowd ? 0 : (others[0] as number);
    ids.set([first, ...others.filter((id) => id !== first)].slice(0, topK), row * topK);
  }
  return ids;
}

export function expertOperands(shape: ExpertsShape, seed: number) {
  const { rows, numExperts, topK, hidden, inner } = shape;
  const random = new Random(seed);
  return {
    x: exact(random.normals(rows * (hidden + shape.gap))),
    gateUp: exact(random.normals(numExperts * 2 * inner * hidden, 0.25)),
    down: exact(random.normals(numExperts * hidden * inner, 0.25)),
    gateUpBias: random.normals(numExperts * 2 * inner),
    downBias: random.normals(numExperts * hidden),
    ids: chooseExperts(random, shape),
    weights: random.normals(rows * topK),
    residual: exact(random.normals(rows * (hidden + shape.gap))),
  };
}

/** The rows without what stands behind them, which nobody may have written. */
function withoutGaps(values: Float32Array, { rows, hidden, gap }: ExpertsShape): Float32Array {
  const dense = new Float32Array(rows * hidden);
  for (let row = 0; row < rows; row++) {
    const begin = row * (hidden + gap);
    dense.set(values.subarray(begin, begin + hidden), row * hidden);
    if (values.subarray(begin + hidden, begin + hidden + gap).some((value) => value !== poison))
      throw new Error(`something was written behind row ${row}`);
  }
  return dense;
}

/** What the experts make of the rows, which are launched `rowsAtOnce` at a time. */
export function runExperts(
  device: Device,
  shape: ExpertsShape,
  given: ReturnType<typeof expertOperands>,
  rowsAtOnce = shape.rows,
): Float32Array {
  const { rows, numExperts, topK, hidden, inner } = shape;
  const buffers = new Buffers(device);
  const dtype = device.kind === "cpu" ? "float32" : "bfloat16";
  const stride = hidden + shape.gap;
  const rowBytes = stride * (dtype === "float32" ? 4 : 2);
  const x = buffers.putFloats(given.x, dtype);
  const residual = buffers.putFloats(given.residual, dtype);
  const out = buffers.putFloats(new Float32Array(rows * stride).fill(poison), dtype);
  const ids = buffers.put(given.ids);
  const weights = buffers.put(given.weights);
  const op = device.op("moeExperts", {
    gateUp: buffers.putWeight(given.gateUp, numExperts * 2 * inner, hidden, "bfloat16"),
    down: buffers.putWeight(given.down, numExperts * hidden, inner, "bfloat16"),
    gateUpBias: shape.biases ? buffers.put(given.gateUpBias) : 0,
    downBias: shape.biases ? buffers.put(given.downBias) : 0,
    xStride: stride,
    residualStride: stride,
    outStride: stride,
    rows,
    hidden,
    inner,
    numExperts,
    topK,
    activation: activationNumber(shape.activation),
    dtype: dtypes[dtype],
    weightDtype: dtypes.bfloat16,
  });
  op.set("scratch", buffers.allocate(device.scratchBytes("moe", op.block)));
  for (let row = 0; row < rows; row += rowsAtOnce) {
    op.set("x", x + row * rowBytes)
      .set("residual", shape.residual ? residual + row * rowBytes : 0)
      .set("out", out + row * rowBytes);
    op.set("ids", ids + row * topK * 4).set("weights", weights + row * topK * 4);
    op.set("rows", Math.min(rowsAtOnce, rows - row)).launch();
  }
  const result = buffers.floats(out, rows * stride, dtype);
  buffers.release();
  return withoutGaps(result, shape);
}
