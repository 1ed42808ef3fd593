/** A batch of rows to sample, its parameters drawn from a seed, and a run on a device. */
import { type BlockSchema, layoutOf, writeField } from "../../../ffi/argument-block";
import { samplingParamsBlock } from "../../../ffi/blocks";
import type { Device } from "../../../ffi/device";
import { Buffers } from "../../kernels/support/buffers";
import type { Random } from "../../kernels/support/random";

export type SamplingValues = { [K in keyof typeof samplingParamsBlock]?: number };

export const biasCapacity = 16;
export const suppressedCapacity = 8;

export interface SamplingBatch {
  readonly vocab: number;
  readonly logits: Float32Array;
  readonly slots: Int32Array;
  readonly positions: Int32Array;
  readonly params: readonly SamplingValues[];
  readonly counts: Uint32Array;
  readonly biasIds: Int32Array;
  readonly biasValues: Float32Array;
  readonly suppressedIds: Int32Array;
  readonly mask: Uint32Array | undefined;
}

export interface SamplingResult {
  readonly tokens: Int32Array;
  readonly lastTokens: Int32Array;
  readonly counts: Uint32Array;
  /** What `time` measured of the launch, if it was given. */
  readonly launchNs?: number;
}

function packParams(params: readonly SamplingValues[]): Uint8Array {
  const schema: BlockSchema = samplingParamsBlock;
  const { offsets, bytes } = layoutOf(schema);
  const packed = new Uint8Array(bytes * params.length);
  params.forEach((values, slot) => {
    const view = new DataView(packed.buffer, slot * bytes, bytes);
    for (const [name, value] of Object.entries(values)) {
      writeField(view, offsets[name] as number, schema[name] as "int32", value as number);
    }
  });
  return packed;
}

/** One slot a row, in a shuffled order; every feature on in some rows. */
export function samplingBatch(random: Random, rows: number, vocab: number): SamplingBatch {
  const slots = random.permutation(rows);
  const words = Math.ceil(vocab / 32);
  return {
    vocab,
    logits: random.normals(rows * vocab, 4),
    slots,
    positions: random.integers(rows, 0, 100_000),
    params: Array.from({ length: rows }, () => ({
      temperature: random.pick([0, 0.3, 1, 1, 2]),
      topP: random.pick([1, 0.95, 0.5, 0.01]),
      minP: random.pick([0, 0, 0.05, 0.9]),
      topK: random.pick([-1, 0, 1, 40, 1000, vocab + 5]),
      repetitionPenalty: random.pick([1, 1.3]),
      presencePenalty: random.pick([0, 0.5]),
      frequencyPenalty: random.pick([0, 0.7]),
      seedLow: random.integer(0, 2 ** 32 - 1),
      seedHigh: random.integer(0, 2 ** 32 - 1),
      choice: random.integer(0, 3),
      numBiases: random.integer(0, biasCapacity),
      numSuppressed: random.integer(0, suppressedCapacity),
      suppressBelow: random.integer(0, 100_000),
      usesCounts: random.integer(0, 1),
    })),
    counts: Uint32Array.from({ length: rows * vocab }, () =>
      random.next() < 0.9 ? 0 : (random.integer(0, 1) * 2 ** 31 + random.integer(0, 3)) >>> 0,
    ),
    biasIds: random.integers(rows * biasCapacity, 0, Math.min(vocab - 1, 30)),
    biasValues: random.normals(rows * biasCapacity, 10),
    suppressedIds: random.integers(rows * suppressedCapacity, 0, vocab - 1),
    mask: Uint32Array.from({ length: rows * words }, () => random.integer(0, 2 ** 32 - 1)),
  };
}

export function sampleBatch(
  device: Device,
  batch: SamplingBatch,
  time?: (launch: () => void) => number,
): SamplingResult {
  const buffers = new Buffers(device);
  const rows = batch.slots.length;
  const numSlots = batch.params.length;
  const out = buffers.put(new Int32Array(rows).fill(-7));
  const lastTokens = buffers.put(new Int32Array(numSlots).fill(-7));
  const counts = buffers.put(batch.counts);
  const op = device.op("sample", {
    logits: buffers.put(batch.logits),
    slots: buffers.put(batch.slots),
    positions: buffers.put(batch.positions),
    params: buffers.put(packParams(batch.params)),
    counts,
    biasIds: buffers.put(batch.biasIds),
    biasValues: buffers.put(batch.biasValues),
    suppressedIds: buffers.put(batch.suppressedIds),
    mask: batch.mask ? buffers.put(batch.mask) : 0,
    out,
    lastTokens,
    logitsStride: batch.vocab,
    rows,
    vocab: batch.vocab,
    numSlots,
    biasCapacity,
    suppressedCapacity,
  });
  op.set("scratch", buffers.allocate(device.scratchBytes("sample", op.block)));
  if (time === undefined) op.launch();
  const launchNs = time?.(() => op.launch());
  const result = {
    ...(launchNs !== undefined && { launchNs }),
    tokens: buffers.int32s(out, rows),
    lastTokens: buffers.int32s(lastTokens, numSlots),
    counts: buffers.get(counts, new Uint32Array(batch.counts.length)),
  };
  buffers.release();
  return result;
}
