/**
 * Cases of granary_qkv: norms, both rotations, partial rotary, different value width, bfloat16 pages, skipped
 * locations.
 */
import { type Dtype, dtypeBytes } from "../../../ffi/device";
import { rounded } from "../support/bfloat16";
import { Buffers } from "../support/buffers";
import { Random } from "../support/random";
import type { ActivationDtype, KernelCase } from "./kernel-case";
import { at, blankMatrix, dtypeNumber, type Matrix, randomMatrix, rowAddress, untouched } from "./operands";

interface QkvShape {
  readonly numQHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly vHeadDim?: number;
  readonly pairs: number;
  readonly interleaved?: boolean;
  readonly norms?: boolean;
  readonly kvDtype: Dtype;
  readonly inPlace?: boolean;
  readonly withoutCache?: boolean;
}

const rows = 100;
const pageSize = 8;
const numPages = 16;
const eps = 1e-6;
const normWeightOffset = 1;
/** Unused elements behind each page. */
const pageGap = 6;

function operands(shape: QkvShape, dtype: ActivationDtype) {
  const { numQHeads, numKvHeads, headDim, vHeadDim = headDim, pairs } = shape;
  const random = new Random(headDim * 31 + pairs);
  const width = numQHeads * headDim + numKvHeads * (headDim + vHeadDim);
  // A permutation of the rows behind page 0, so that no two tokens share one; every ninth token is written
  // nowhere.
  const locations = random
    .permutation((numPages - 1) * pageSize)
    .slice(0, rows)
    .map((l) => l + pageSize);
  return {
    qkv: randomMatrix(random, rows, width, { gap: 4, dtype }),
    qNorm: random.normals(headDim, 0.3),
    kNorm: random.normals(headDim, 0.3),
    cosSin: random.normals(rows * pairs * 2),
    locations: locations.map((l, r) => (r % 9 === 4 ? -1 : l)),
  };
}

type Operands = ReturnType<typeof operands>;

/** One head, normed and rotated, in doubles. */
function preparedHead(
  shape: QkvShape,
  given: Operands,
  row: number,
  first: number,
  norm: Float32Array,
): Float64Array {
  const { headDim, pairs, interleaved = false } = shape;
  const head = Float64Array.from({ length: headDim }, (_, d) => at(given.qkv, row, first + d));
  if (shape.norms) {
    const mean = head.reduce((sum, value) => sum + value * value, 0) / headDim;
    head.forEach((value, d) => {
      head[d] = (value / Math.sqrt(mean + eps)) * ((norm[d] as number) + normWeightOffset);
    });
  }
  for (let i = 0; i < pairs; i++) {
    const [first, second] = interleaved ? [2 * i, 2 * i + 1] : [i, i + pairs];
    const [a, b] = [head[first] as number, head[second] as number];
    const cos = given.cosSin[(row * pairs + i) * 2] as number;
    const sin = given.cosSin[(row * pairs + i) * 2 + 1] as number;
    head[first] = a * cos - b * sin;
    head[second] = b * cos + a * sin;
  }
  return head;
}

const pageElements = (shape: QkvShape, dim: number) => pageSize * shape.numKvHeads * dim + pageGap;

/** Where element 0 of a head lies in a cache, in elements. */
function cacheIndex(shape: QkvShape, location: number, head: number, dim: number): number {
  const page = Math.floor(location / pageSize);
  return page * pageElements(shape, dim) + ((location % pageSize) * shape.numKvHeads + head) * dim;
}

function referenceCaches(shape: QkvShape, given: Operands) {
  const { numQHeads, numKvHeads, headDim, vHeadDim = headDim } = shape;
  const k = new Float64Array(numPages * pageElements(shape, headDim)).fill(untouched);
  const v = new Float64Array(numPages * pageElements(shape, vHeadDim)).fill(untouched);
  for (let r = 0; r < rows; r++) {
    const location = given.locations[r] as number;
    if (location < 0 || shape.withoutCache) continue;
    for (let h = 0; h < numKvHeads; h++) {
      const firstK = (numQHeads + h) * headDim;
      k.set(preparedHead(shape, given, r, firstK, given.kNorm), cacheIndex(shape, location, h, headDim));
      const firstV = (numQHeads + numKvHeads) * headDim + h * vHeadDim;
      for (let d = 0; d < vHeadDim; d++) {
        v[cacheIndex(shape, location, h, vHeadDim) + d] = at(given.qkv, r, firstV + d);
      }
    }
  }
  return { k, v };
}

function referenceQueries(shape: QkvShape, given: Operands, out: Matrix): Float64Array {
  const queries = Float64Array.from(out.values);
  for (let r = 0; r < rows; r++) {
    for (let h = 0; h < shape.numQHeads; h++) {
      const head = preparedHead(shape, given, r, h * shape.headDim, given.qNorm);
      queries.set(head, r * out.stride + h * shape.headDim);
    }
  }
  return queries;
}

function qkvCase(shape: QkvShape): KernelCase {
  const { numQHeads, numKvHeads, headDim, vHeadDim = headDim, pairs, kvDtype } = shape;
  const qOutOf = (given: Operands) => (shape.inPlace ? given.qkv : blankMatrix(rows, numQHeads * headDim, 3));
  return {
    name: `qkv ${JSON.stringify(shape)}`,
    rows,
    prepare(device, dtype) {
      const given = operands(shape, dtype);
      const buffers = new Buffers(device);
      const qkv = buffers.putFloats(given.qkv.values, dtype);
      const qOutMatrix = qOutOf(given);
      const qOut = shape.inPlace ? qkv : buffers.putFloats(qOutMatrix.values, dtype);
      const cosSin = buffers.put(given.cosSin);
      const locations = buffers.put(given.locations);
      const blankCache = (dim: number) =>
        buffers.putFloats(new Float32Array(numPages * pageElements(shape, dim)).fill(untouched), kvDtype);
      const [k, v] = [blankCache(headDim), blankCache(vHeadDim)];
      const op = device.op("qkv", {
        qNorm: shape.norms ? buffers.put(given.qNorm) : 0,
        kNorm: shape.norms ? buffers.put(given.kNorm) : 0,
        kCache: shape.withoutCache ? 0 : k,
        vCache: shape.withoutCache ? 0 : v,
        qkvStride: given.qkv.stride,
        qOutStride: qOutMatrix.stride,
        kPageStrideBytes: pageElements(shape, headDim) * dtypeBytes[kvDtype],
        vPageStrideBytes: pageElements(shape, vHeadDim) * dtypeBytes[kvDtype],
        numQHeads,
        numKvHeads,
        headDim,
        vHeadDim,
        pairs,
        pageSize,
        interleaved: shape.interleaved ? 1 : 0,
        dtype: dtypeNumber(dtype),
        kvDtype: dtypeNumber(kvDtype),
        eps,
        normWeightOffset,
      });
      return {
        launch(begin, end) {
          op.set("qkv", rowAddress(qkv, begin, given.qkv.stride, dtype));
          op.set("qOut", rowAddress(qOut, begin, qOutMatrix.stride, dtype));
          op.set("cosSin", pairs > 0 ? cosSin + begin * pairs * 8 : 0);
          op.set("locations", locations + begin * 4).set("rows", end - begin);
          op.launch();
        },
        outputs: () => ({
          q: buffers.floats(qOut, rows * qOutMatrix.stride, dtype),
          k: buffers.floats(k, numPages * pageElements(shape, headDim), kvDtype),
          v: buffers.floats(v, numPages * pageElements(shape, vHeadDim), kvDtype),
        }),
        release: () => buffers.release(),
      };
    },
    reference(dtype) {
      const given = operands(shape, dtype);
      const { k, v } = referenceCaches(shape, given);
      const stored = (cache: Float64Array) => rounded(Float32Array.from(cache), kvDtype);
      return { q: referenceQueries(shape, given, qOutOf(given)), k: stored(k), v: stored(v) };
    },
    tolerance: (dtype) =>
      dtype === "bfloat16" || kvDtype === "bfloat16"
        ? { absolute: 1e-2, relative: 2 ** -7 }
        : { absolute: 2e-6, relative: 1e-6 },
  };
}

export const qkvCases: readonly KernelCase[] = [
  qkvCase({ numQHeads: 4, numKvHeads: 2, headDim: 32, pairs: 16, norms: true, kvDtype: "float32" }),
  qkvCase({ numQHeads: 3, numKvHeads: 1, headDim: 20, pairs: 4, interleaved: true, kvDtype: "bfloat16" }),
  qkvCase({
    numQHeads: 2,
    numKvHeads: 2,
    headDim: 24,
    vHeadDim: 17,
    pairs: 8,
    kvDtype: "float32",
    inPlace: true,
  }),
  qkvCase({ numQHeads: 8, numKvHeads: 1, headDim: 64, pairs: 0, norms: true, kvDtype: "bfloat16" }),
  qkvCase({ numQHeads: 2, numKvHeads: 1, headDim: 16, pairs: 8, kvDtype: "float32", withoutCache: true }),
];
