/** Cases of granary_moe_route and granary_moe_experts. */
import type { Dtype } from "../../../ffi/device";
import { rounded } from "../support/bfloat16";
import { Buffers } from "../support/buffers";
import { Random } from "../support/random";
import type { ActivationDtype, KernelCase } from "./kernel-case";
import { at, blankMatrix, computeMatrix, dtypeNumber, randomMatrix, rowAddress } from "./operands";
import { type Activation, activate, activationNumber } from "./rows";

const rows = 100;

const routings = { softmaxTopK: 0, softmaxTopKNorm: 1, topKSoftmax: 2 } as const;
type Routing = keyof typeof routings;

interface Choice {
  readonly ids: Int32Array;
  readonly weights: Float64Array;
}

/** The chosen of one row by sorting, ties to the lower id. */
function chooseExperts(
  logits: Float32Array,
  topK: number,
  routing: Routing,
): { id: number; weight: number }[] {
  const order = Array.from(logits.keys()).sort(
    (a, b) => (logits[b] as number) - (logits[a] as number) || a - b,
  );
  const chosen = order.slice(0, topK);
  const among = routing === "topKSoftmax" ? chosen : order;
  const largest = logits[order[0] as number] as number;
  const power = (id: number) => Math.exp((logits[id] as number) - largest);
  const total = among.reduce((sum, id) => sum + power(id), 0);
  const kept = chosen.reduce((sum, id) => sum + power(id) / total, 0);
  return chosen.map((id) => ({ id, weight: power(id) / total / (routing === "softmaxTopKNorm" ? kept : 1) }));
}

function chooseAll(logits: Float32Array, numExperts: number, topK: number, routing: Routing): Choice {
  const ids = new Int32Array(rows * topK);
  const weights = new Float64Array(rows * topK);
  for (let r = 0; r < rows; r++) {
    const row = logits.subarray(r * numExperts, (r + 1) * numExperts);
    chooseExperts(row, topK, routing).forEach(({ id, weight }, j) => {
      ids[r * topK + j] = id;
      weights[r * topK + j] = weight;
    });
  }
  return { ids, weights };
}

/** Coarse steps make ties common. */
function coarseLogits(numExperts: number): Float32Array {
  return new Random(numExperts).normals(rows * numExperts, 2).map((x) => Math.round(x * 4) / 4);
}

function routeCase(numExperts: number, topK: number, routing: Routing): KernelCase {
  const logits = coarseLogits(numExperts);
  return {
    name: `moeRoute ${topK} of ${numExperts} ${routing}`,
    rows,
    prepare(device) {
      const buffers = new Buffers(device);
      const x = buffers.put(logits);
      const ids = buffers.allocate(rows * topK * 4);
      const weights = buffers.allocate(rows * topK * 4);
      const op = device.op("moeRoute", { numExperts, topK, routing: routings[routing] });
      return {
        launch(begin, end) {
          op.set("logits", x + begin * numExperts * 4).set("ids", ids + begin * topK * 4);
          op.set("weights", weights + begin * topK * 4).set("rows", end - begin);
          op.launch();
        },
        outputs: () => ({
          ids: buffers.int32s(ids, rows * topK),
          weights: buffers.floats(weights, rows * topK, "float32"),
        }),
        release: () => buffers.release(),
      };
    },
    reference: () => ({ ...chooseAll(logits, numExperts, topK, routing) }),
    tolerance: () => ({ absolute: 1e-6, relative: 1e-6 }),
  };
}

interface ExpertsShape {
  readonly numExperts: number;
  readonly topK: number;
  readonly hidden: number;
  readonly inner: number;
  readonly activation: Activation;
  readonly weightDtype: Dtype;
  readonly biases?: boolean;
  readonly residual?: boolean;
}

/** Behind each row; aligned rows where the shape could go to tensor cores. */
const gapOf = ({ hidden }: ExpertsShape) => (hidden % 64 === 0 ? 8 : 2);

function expertOperands(shape: ExpertsShape, dtype: ActivationDtype) {
  const { numExperts, topK, hidden, inner, weightDtype } = shape;
  const random = new Random(hidden + inner);
  const choice = chooseAll(coarseLogits(numExperts), numExperts, topK, "softmaxTopKNorm");
  return {
    x: randomMatrix(random, rows, hidden, { gap: gapOf(shape), dtype }),
    gateUp: rounded(random.normals(numExperts * 2 * inner * hidden, 1 / Math.sqrt(hidden)), weightDtype),
    down: rounded(random.normals(numExperts * hidden * inner, 1 / Math.sqrt(inner)), weightDtype),
    gateUpBias: random.normals(numExperts * 2 * inner),
    downBias: random.normals(numExperts * hidden),
    residual: randomMatrix(random, rows, hidden, { gap: gapOf(shape), dtype }),
    ids: choice.ids,
    weights: Float32Array.from(choice.weights),
  };
}

type ExpertOperands = ReturnType<typeof expertOperands>;

/** One expert's answer to one row. */
function applyExpert(shape: ExpertsShape, given: ExpertOperands, row: number, expert: number): Float64Array {
  const { hidden, inner, biases } = shape;
  const gateUp = Float64Array.from({ length: 2 * inner }, (_, c) => {
    let sum = biases ? (given.gateUpBias[expert * 2 * inner + c] as number) : 0;
    const first = (expert * 2 * inner + c) * hidden;
    for (let k = 0; k < hidden; k++) sum += at(given.x, row, k) * (given.gateUp[first + k] as number);
    return sum;
  });
  return Float64Array.from({ length: hidden }, (_, c) => {
    let sum = biases ? (given.downBias[expert * hidden + c] as number) : 0;
    for (let k = 0; k < inner; k++) {
      const active = activate(shape.activation, gateUp[k] as number) * (gateUp[inner + k] as number);
      sum += active * (given.down[(expert * hidden + c) * inner + k] as number);
    }
    return sum;
  });
}

function expertsCase(shape: ExpertsShape): KernelCase {
  const { numExperts, topK, hidden, inner, weightDtype } = shape;
  return {
    name: `moeExperts ${JSON.stringify(shape)}`,
    rows,
    prepare(device, dtype) {
      const given = expertOperands(shape, dtype);
      const buffers = new Buffers(device);
      const { stride } = given.x;
      const x = buffers.putFloats(given.x.values, dtype);
      const residual = buffers.putFloats(given.residual.values, dtype);
      const ids = buffers.put(given.ids);
      const weights = buffers.put(given.weights);
      const out = buffers.putFloats(blankMatrix(rows, hidden, gapOf(shape)).values, dtype);
      const op = device.op("moeExperts", {
        gateUp: buffers.putWeight(given.gateUp, numExperts * 2 * inner, hidden, weightDtype),
        down: buffers.putWeight(given.down, numExperts * hidden, inner, weightDtype),
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
        dtype: dtypeNumber(dtype),
        weightDtype: dtypeNumber(weightDtype),
      });
      op.set("scratch", buffers.allocate(device.scratchBytes("moe", op.block)));
      return {
        launch(begin, end) {
          op.set("x", rowAddress(x, begin, stride, dtype));
          op.set("residual", shape.residual ? rowAddress(residual, begin, stride, dtype) : 0);
          op.set("ids", ids + begin * topK * 4).set("weights", weights + begin * topK * 4);
          op.set("out", rowAddress(out, begin, stride, dtype)).set("rows", end - begin);
          op.launch();
        },
        outputs: () => ({ out: buffers.floats(out, rows * stride, dtype) }),
        release: () => buffers.release(),
      };
    },
    reference(dtype) {
      const given = expertOperands(shape, dtype);
      const answers = Array.from({ length: rows }, (_, r) => {
        const sum = new Float64Array(hidden);
        for (let j = 0; j < topK; j++) {
          const answer = applyExpert(shape, given, r, given.ids[r * topK + j] as number);
          for (let c = 0; c < hidden; c++) {
            sum[c] = (sum[c] as number) + (given.weights[r * topK + j] as number) * (answer[c] as number);
          }
        }
        return sum;
      });
      const out = computeMatrix(
        rows,
        hidden,
        gapOf(shape),
        (r, c) => (answers[r]?.[c] as number) + (shape.residual ? at(given.residual, r, c) : 0),
      );
      return { out };
    },
    tolerance: (dtype) =>
      dtype === "bfloat16" ? { absolute: 6e-2, relative: 2e-2 } : { absolute: 5e-6, relative: 5e-6 },
  };
}

export const moeCases: readonly KernelCase[] = [
  routeCase(8, 2, "softmaxTopK"),
  routeCase(60, 4, "softmaxTopKNorm"),
  routeCase(33, 33, "topKSoftmax"),
  expertsCase({ numExperts: 4, topK: 2, hidden: 24, inner: 17, activation: "silu", weightDtype: "float32" }),
  expertsCase({
    numExperts: 9,
    topK: 3,
    hidden: 40,
    inner: 32,
    activation: "geluTanh",
    weightDtype: "bfloat16",
    biases: true,
    residual: true,
  }),
  expertsCase({
    numExperts: 6,
    topK: 2,
    hidden: 128,
    inner: 64,
    activation: "silu",
    weightDtype: "bfloat16",
    biases: true,
    residual: true,
  }),
  expertsCase({
    numExperts: 8,
    topK: 3,
    hidden: 64,
    inner: 192,
    activation: "geluTanh",
    weightDtype: "bfloat16",
  }),
];
