/**
 * Recorded decode steps: one graph a bucket of batch size and of sequence length,
 * replayed with whatever the step's device inputs hold. A bucket's first step runs op
 * by op and is recorded behind that, since a product has to have run before it can be.
 */
import type { Address, Device } from "../../ffi/device";
import type { StepBounds, StepShape } from "../layers/build-context";

/** Batch sizes that are recorded; a step is padded up to the next one. */
export function batchBuckets(maxSeqs: number): readonly number[] {
  const buckets: number[] = [];
  for (let size = 1; size < maxSeqs; size += size < 8 ? size : size < 32 ? 8 : size < 128 ? 16 : 32)
    buckets.push(size);
  return [...buckets, maxSeqs];
}

/** Length bounds that are recorded: they decide how far a kernel splits the keys. */
export function lengthBuckets(maxSeqLen: number): readonly number[] {
  const buckets: number[] = [];
  for (let length = 1024; length < maxSeqLen; length *= 4) buckets.push(length);
  return [...buckets, maxSeqLen];
}

function bucketFor(buckets: readonly number[], value: number): number {
  return buckets.find((bucket) => bucket >= value) ?? (buckets[buckets.length - 1] as number);
}

export class DecodeGraphs {
  readonly #device: Device;
  readonly #batchBuckets: readonly number[];
  readonly #lengthBuckets: readonly number[];
  readonly #graphs = new Map<number, Address>();

  constructor(device: Device, bounds: StepBounds) {
    this.#device = device;
    this.#batchBuckets = batchBuckets(bounds.maxSeqs);
    this.#lengthBuckets = lengthBuckets(bounds.maxSeqLen);
  }

  get numRecorded(): number {
    return this.#graphs.size;
  }

  /** Sequences that a step of `numSeqs` is padded to. */
  paddedSeqs(numSeqs: number): number {
    return bucketFor(this.#batchBuckets, numSeqs);
  }

  /**
   * Runs the step in the shape of its bucket, from the bucket's
   * graph once there is one; `enqueue` launches a step's ops.
   */
  launch(shape: StepShape, enqueue: (padded: StepShape) => void): void {
    const seqs = this.paddedSeqs(shape.decodeSeqs);
    const maxSeqLen = bucketFor(this.#lengthBuckets, shape.maxSeqLen);
    const key =
      this.#lengthBuckets.indexOf(maxSeqLen) * (this.#batchBuckets.length + 1) +
      this.#batchBuckets.indexOf(seqs);
    const graph = this.#graphs.get(key);
    if (graph !== undefined) {
      this.#device.launchGraph(graph);
      return;
    }
    const padded = { ...shape, rows: seqs, decodeSeqs: seqs, maxSeqLen };
    enqueue(padded);
    this.#graphs.set(
      key,
      this.#device.capture(() => enqueue(padded)),
    );
  }

  close(): void {
    for (const graph of this.#graphs.values()) this.#device.destroyGraph(graph);
    this.#graphs.clear();
  }
}
