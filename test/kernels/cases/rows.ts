/** Cases of the ops that map rows to rows: embedding, gather, gated activation, log-softmax, rope table. */
import { rounded } from "../support/bfloat16";
import { Buffers } from "../support/buffers";
import { Random } from "../support/random";
import type { ActivationDtype, KernelCase, Tolerance } from "./kernel-case";
import { at, blankMatrix, computeMatrix, dtypeNumber, randomMatrix, rowAddress } from "./operands";

const rows = 100;
const rounding = (dtype: ActivationDtype, float32: number): Tolerance =>
  dtype === "bfloat16" ? { absolute: 1e-3, relative: 2 ** -8 } : { absolute: float32, relative: float32 };

function embeddingCase(columns: number, tableDtype: ActivationDtype, scale: number): KernelCase {
  const vocab = 41;
  const random = new Random(columns);
  const table = rounded(random.normals(vocab * columns), tableDtype);
  const ids = random.integers(rows, -1, vocab - 1);
  return {
    name: `embedding ${columns} ${tableDtype} times ${scale}`,
    rows,
    prepare(device, dtype) {
      const buffers = new Buffers(device);
      const idsAddress = buffers.put(ids);
      const out = buffers.putFloats(blankMatrix(rows, columns).values, dtype);
      const op = device.op("embedding", {
        table: buffers.putFloats(table, tableDtype),
        columns,
        vocab,
        dtype: dtypeNumber(dtype),
        tableDtype: dtypeNumber(tableDtype),
        scale,
      });
      return {
        launch(begin, end) {
          op.set("ids", idsAddress + begin * 4).set("out", rowAddress(out, begin, columns, dtype));
          op.set("rows", end - begin).launch();
        },
        outputs: () => ({ out: buffers.floats(out, rows * columns, dtype) }),
        release: () => buffers.release(),
      };
    },
    reference: () => ({
      out: computeMatrix(rows, columns, 0, (r, c) => {
        const id = ids[r] as number;
        return id < 0 ? 0 : (table[id * columns + c] as number) * Math.fround(scale);
      }),
    }),
    tolerance: (dtype) => rounding(dtype, 1e-7),
  };
}

function gatherCase(columns: number, gap: number): KernelCase {
  const numSources = 23;
  const source = (dtype: ActivationDtype) =>
    randomMatrix(new Random(columns), numSources, columns, { gap, dtype });
  const indices = new Random(5).integers(rows, -1, numSources - 1);
  const stride = columns + gap;
  return {
    name: `gatherRows ${columns} gap ${gap}`,
    rows,
    prepare(device, dtype) {
      const buffers = new Buffers(device);
      const indicesAddress = buffers.put(indices);
      const out = buffers.putFloats(blankMatrix(rows, columns, gap).values, dtype);
      const op = device.op("gatherRows", {
        x: buffers.putFloats(source(dtype).values, dtype),
        xStride: stride,
        outStride: stride,
        columns,
        dtype: dtypeNumber(dtype),
      });
      return {
        launch(begin, end) {
          op.set("indices", indicesAddress + begin * 4).set("out", rowAddress(out, begin, stride, dtype));
          op.set("rows", end - begin).launch();
        },
        outputs: () => ({ out: buffers.floats(out, rows * stride, dtype) }),
        release: () => buffers.release(),
      };
    },
    reference: (dtype) => ({
      out: computeMatrix(rows, columns, gap, (r, c) => {
        const index = indices[r] as number;
        return index < 0 ? 0 : at(source(dtype), index, c);
      }),
    }),
    tolerance: () => ({ absolute: 0, relative: 0 }),
  };
}

const activations = {
  silu: (x: number) => x / (1 + Math.exp(-x)),
  geluTanh: (x: number) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
};
export type Activation = keyof typeof activations;
export const activate = (activation: Activation, x: number): number => activations[activation](x);
export const activationNumber = (activation: Activation): number => (activation === "silu" ? 0 : 1);

function gluCase(columns: number, activation: Activation, gap: number): KernelCase {
  const gateUp = (dtype: ActivationDtype) =>
    randomMatrix(new Random(columns), rows, 2 * columns, { gap, dtype, deviation: 6 });
  return {
    name: `glu ${columns} ${activation} gap ${gap}`,
    rows,
    prepare(device, dtype) {
      const buffers = new Buffers(device);
      const x = gateUp(dtype);
      const xAddress = buffers.putFloats(x.values, dtype);
      const out = buffers.putFloats(blankMatrix(rows, columns, gap).values, dtype);
      const op = device.op("glu", {
        gateUpStride: x.stride,
        outStride: columns + gap,
        columns,
        activation: activationNumber(activation),
        dtype: dtypeNumber(dtype),
      });
      return {
        launch(begin, end) {
          op.set("gateUp", rowAddress(xAddress, begin, x.stride, dtype));
          op.set("out", rowAddress(out, begin, columns + gap, dtype));
          op.set("rows", end - begin).launch();
        },
        outputs: () => ({ out: buffers.floats(out, rows * (columns + gap), dtype) }),
        release: () => buffers.release(),
      };
    },
    reference(dtype) {
      const x = gateUp(dtype);
      const out = computeMatrix(
        rows,
        columns,
        gap,
        (r, c) => activate(activation, at(x, r, c)) * at(x, r, columns + c),
      );
      return { out };
    },
    tolerance: (dtype) => (dtype === "bfloat16" ? rounding(dtype, 0) : { absolute: 3e-6, relative: 1e-6 }),
  };
}

/** Unreachable tokens, a row of equal values and a row with a NaN among the usual ones. */
function logitsOf(columns: number) {
  const logits = randomMatrix(new Random(columns), rows, columns, { gap: 2, deviation: 8 });
  const stride = logits.stride;
  if (columns > 3) {
    logits.values.fill(-Infinity, 3 * stride + 1, 3 * stride + 3);
    logits.values.fill(2, 4 * stride, 4 * stride + columns);
    logits.values[5 * stride + 2] = Number.NaN;
  }
  return logits;
}

function logSoftmaxCase(columns: number, inPlace: boolean): KernelCase {
  const logits = logitsOf(columns);
  const { stride } = logits;
  return {
    name: `logSoftmax ${columns}${inPlace ? " in place" : ""}`,
    rows,
    prepare(device) {
      const buffers = new Buffers(device);
      const x = buffers.put(logits.values);
      const out = inPlace ? x : buffers.put(blankMatrix(rows, columns, 2).values);
      const op = device.op("logSoftmax", { logitsStride: stride, outStride: stride, columns });
      return {
        launch(begin, end) {
          op.set("logits", rowAddress(x, begin, stride, "float32"));
          op.set("out", rowAddress(out, begin, stride, "float32"));
          op.set("rows", end - begin).launch();
        },
        outputs: () => ({ out: buffers.floats(out, rows * stride, "float32") }),
        release: () => buffers.release(),
      };
    },
    reference() {
      const shifts = Array.from({ length: rows }, (_, r) => {
        const row = Array.from({ length: columns }, (_, c) => at(logits, r, c));
        const largest = Math.max(...row);
        return largest + Math.log(row.reduce((sum, x) => sum + Math.exp(x - largest), 0));
      });
      return { out: computeMatrix(rows, columns, 2, (r, c) => at(logits, r, c) - (shifts[r] as number)) };
    },
    tolerance: () => ({ absolute: 6e-6, relative: 1e-6 }),
  };
}

function ropeTableCase(pairs: number, scale: number): KernelCase {
  const random = new Random(pairs);
  const positions = random.integers(rows, 0, 130_000);
  const frequencies = Float64Array.from({ length: pairs }, (_, i) => 10_000 ** (-i / pairs));
  return {
    name: `ropeTable ${pairs} times ${scale}`,
    rows,
    prepare(device) {
      const buffers = new Buffers(device);
      const positionsAddress = buffers.put(positions);
      const out = buffers.allocate(rows * pairs * 8);
      const op = device.op("ropeTable", { inverseFrequencies: buffers.put(frequencies), pairs, scale });
      return {
        launch(begin, end) {
          op.set("positions", positionsAddress + begin * 4).set("out", out + begin * pairs * 8);
          op.set("rows", end - begin).launch();
        },
        outputs: () => ({ out: buffers.floats(out, rows * pairs * 2, "float32") }),
        release: () => buffers.release(),
      };
    },
    reference: () => ({
      out: computeMatrix(rows, pairs * 2, 0, (r, c) => {
        const angle = (positions[r] as number) * (frequencies[c >> 1] as number);
        return (c % 2 === 0 ? Math.cos(angle) : Math.sin(angle)) * scale;
      }),
    }),
    tolerance: () => ({ absolute: 1e-7, relative: 1e-7 }),
  };
}

export const rowCases: readonly KernelCase[] = [
  embeddingCase(33, "float32", 1),
  embeddingCase(64, "bfloat16", 5.5),
  gatherCase(1, 0),
  gatherCase(37, 4),
  gluCase(1, "silu", 0),
  gluCase(50, "silu", 3),
  gluCase(96, "geluTanh", 0),
  logSoftmaxCase(1, false),
  logSoftmaxCase(1003, false),
  logSoftmaxCase(64, true),
  ropeTableCase(32, 1),
  ropeTableCase(5, 1.25),
];
