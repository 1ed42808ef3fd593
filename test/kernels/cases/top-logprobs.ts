/** Cases of granary_top_logprobs, by sorting. */
import { Buffers } from "../support/buffers";
import { Random } from "../support/random";
import type { KernelCase } from "./kernel-case";

const rows = 100;
const gap = 5;

function operands(columns: number) {
  const random = new Random(columns);
  const stride = columns + gap;
  // Coarse steps make ties common; impossible tokens are -inf, and a broken row is all NaN.
  const logprobs = random.normals(rows * stride, 4).map((x) => Math.round(x * 8) / 8);
  logprobs.fill(-Infinity, 3 * stride, 3 * stride + Math.ceil(columns / 2));
  logprobs.fill(Number.NaN, 8 * stride, 8 * stride + columns);
  // Ascending order is the hard one for a selection that keeps the best so far.
  logprobs.subarray(9 * stride, 9 * stride + columns).sort();
  return { stride, logprobs, chosen: random.integers(rows, -1, columns - 1) };
}

function topLogprobsCase(columns: number, k: number): KernelCase {
  return {
    name: `topLogprobs ${k} of ${columns}`,
    rows,
    prepare(device) {
      const { stride, logprobs, chosen } = operands(columns);
      const buffers = new Buffers(device);
      const x = buffers.put(logprobs);
      const chosenIds = buffers.put(chosen);
      const blank = (count: number) => buffers.put(new Int32Array(Math.max(count, 1)).fill(-1));
      const [ids, values, chosenValues, chosenRanks] = [rows * k, rows * k, rows, rows].map(blank) as [
        number,
        number,
        number,
        number,
      ];
      const op = device.op("topLogprobs", { logprobsStride: stride, columns, k });
      return {
        launch(begin, end) {
          op.set("logprobs", x + begin * stride * 4).set("chosen", chosenIds + begin * 4);
          op.set("ids", k > 0 ? ids + begin * k * 4 : 0).set("values", k > 0 ? values + begin * k * 4 : 0);
          op.set("chosenValues", chosenValues + begin * 4).set("chosenRanks", chosenRanks + begin * 4);
          op.set("rows", end - begin).launch();
        },
        outputs: () => ({
          ids: buffers.int32s(ids, rows * k),
          values: buffers.floats(values, rows * k, "float32"),
          chosenValues: buffers.floats(chosenValues, rows, "float32"),
          chosenRanks: buffers.int32s(chosenRanks, rows),
        }),
        release: () => buffers.release(),
      };
    },
    reference() {
      const { stride, logprobs, chosen } = operands(columns);
      const ids = new Int32Array(rows * k);
      const values = new Float32Array(rows * k);
      const chosenValues = new Float32Array(new Int32Array(rows).fill(-1).buffer);
      const chosenRanks = new Int32Array(rows).fill(-1);
      for (let r = 0; r < rows; r++) {
        const row = logprobs.subarray(r * stride, r * stride + columns);
        const rank = (x: number) => (Number.isNaN(x) ? -Number.MAX_VALUE : x);
        const order = Array.from(row.keys());
        order.sort((a, b) => Math.sign(rank(row[b] as number) - rank(row[a] as number)) || a - b);
        ids.set(order.slice(0, k), r * k);
        values.set(
          order.slice(0, k).map((id) => row[id] as number),
          r * k,
        );
        const id = chosen[r] as number;
        if (id < 0) continue;
        chosenValues[r] = row[id] as number;
        chosenRanks[r] = 1 + row.filter((x) => x > (row[id] as number)).length;
      }
      return { ids, values, chosenValues, chosenRanks };
    },
    tolerance: () => ({ absolute: 0, relative: 0 }),
  };
}

export const topLogprobsCases: readonly KernelCase[] = [
  topLogprobsCase(1, 1),
  topLogprobsCase(1000, 0),
  topLogprobsCase(1003, 20),
  topLogprobsCase(64, 64),
  topLogprobsCase(517, 300),
];
