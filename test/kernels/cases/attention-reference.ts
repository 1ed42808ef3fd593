/** Attention by plain loops in double precision. */
import { type AttentionOperands, type AttentionShape, attentionScale, numRows } from "./attention-shape";
import { at, untouched } from "./operands";

/** Rows of K and V of one key, or undefined in a hole. */
function keyRow(shape: AttentionShape, given: AttentionOperands, sequence: number, position: number) {
  const { pageSize, numKvHeads, headDim, vHeadDim = headDim } = shape;
  const page = given.pages[sequence * given.tableWidth + Math.floor(position / pageSize)] as number;
  if (page <= 0) return undefined;
  const row = position % pageSize;
  return {
    k: page * given.kPageElements + row * numKvHeads * headDim,
    v: page * given.vPageElements + row * numKvHeads * vHeadDim,
  };
}

function attendOne(
  shape: AttentionShape,
  given: AttentionOperands,
  query: {
    readonly row: number;
    readonly sequence: number;
    readonly position: number;
    readonly head: number;
  },
): Float64Array {
  const { numQHeads, numKvHeads, headDim, vHeadDim = headDim, window = -1, softcap = 0 } = shape;
  const kvHead = Math.floor(query.head / (numQHeads / numKvHeads));
  const scores: number[] = [];
  const values: number[] = [];
  for (let j = window < 0 ? 0 : Math.max(0, query.position - window); j <= query.position; j++) {
    const key = keyRow(shape, given, query.sequence, j);
    if (key === undefined) continue;
    let dot = 0;
    for (let d = 0; d < headDim; d++) {
      dot +=
        at(given.q, query.row, query.head * headDim + d) * (given.k[key.k + kvHead * headDim + d] as number);
    }
    const scaled = dot * attentionScale(shape);
    scores.push(softcap ? softcap * Math.tanh(scaled / softcap) : scaled);
    values.push(key.v + kvHead * vHeadDim);
  }
  const sink = shape.sinks ? (given.sinks[query.head] as number) : -Infinity;
  const largest = Math.max(sink, ...scores);
  const weights = scores.map((score) => Math.exp(score - largest));
  const total = weights.reduce((sum, weight) => sum + weight, Math.exp(sink - largest));
  return Float64Array.from(
    { length: vHeadDim },
    (_, d) =>
      weights.reduce((sum, weight, i) => sum + weight * (given.v[(values[i] as number) + d] as number), 0) /
      total,
  );
}

/** [rows, numQHeads * vHeadDim] with a gap of two elements behind each row. */
export function attentionReference(shape: AttentionShape, given: AttentionOperands): Float64Array {
  const { numQHeads, headDim, vHeadDim = headDim } = shape;
  const stride = numQHeads * vHeadDim + 2;
  const out = new Float64Array(numRows(shape) * stride).fill(untouched);
  let row = 0;
  shape.sequences.forEach(([cached, queries], sequence) => {
    for (let i = 0; i < queries; i++, row++) {
      for (let head = 0; head < numQHeads; head++) {
        const result = attendOne(shape, given, { row, sequence, position: cached + i, head });
        out.set(result, row * stride + head * vHeadDim);
      }
    }
  });
  return out;
}
