/** Recorded decode steps: few buckets, each recorded once, every step padded to one that holds it. */
import { describe, expect, test } from "bun:test";
import type { Device } from "../../ffi/device";
import { batchBuckets, DecodeGraphs, lengthBuckets } from "../../src/executor/decode-graphs";
import type { StepShape } from "../../src/layers/build-context";

const bounds = { maxRows: 512, maxSeqs: 20, maxSeqLen: 10_000, maxLogitRows: 32 };

/** A device that numbers what it captures and notes what it launches. */
function recordingDevice() {
  const launched: number[] = [];
  const destroyed: number[] = [];
  let numCaptured = 0;
  const device = {
    capture(enqueue: () => void) {
      enqueue();
      return ++numCaptured;
    },
    launchGraph: (graph: number) => void launched.push(graph),
    destroyGraph: (graph: number) => void destroyed.push(graph),
  };
  return { device: device as unknown as Device, launched, destroyed };
}

const decodeStep = (decodeSeqs: number, maxSeqLen: number): StepShape => ({
  rows: decodeSeqs,
  prefillSeqs: 0,
  prefillRows: 0,
  maxQueryTokens: 0,
  decodeSeqs,
  maxSeqLen,
});

describe("buckets", () => {
  test("of batch sizes grow finely at first and end at the largest batch", () => {
    expect(batchBuckets(1)).toEqual([1]);
    expect(batchBuckets(20)).toEqual([1, 2, 4, 8, 16, 20]);
    expect(batchBuckets(256)).toEqual([1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256]);
  });

  test("waste at most half of a small batch and a third of a large one", () => {
    const buckets = batchBuckets(256);
    for (let size = 1; size <= 256; size++) {
      const padded = buckets.find((bucket) => bucket >= size) ?? 0;
      expect(padded).toBeLessThan(size < 9 ? 2 * size : 1.9 * size);
    }
  });

  test("of lengths grow fourfold and end at the longest", () => {
    expect(lengthBuckets(512)).toEqual([512]);
    expect(lengthBuckets(1024)).toEqual([1024]);
    expect(lengthBuckets(10_000)).toEqual([1024, 4096, 10_000]);
  });
});

describe("launching a step", () => {
  test("runs and records its bucket when it comes first, padded, and replays it from then on", () => {
    const { device, launched } = recordingDevice();
    const graphs = new DecodeGraphs(device, bounds);
    const recorded: StepShape[] = [];
    const launch = (seqs: number, length: number) =>
      graphs.launch(decodeStep(seqs, length), (shape) => recorded.push(shape));
    for (const [seqs, length] of [
      [3, 10],
      [4, 1024],
      [5, 10],
      [4, 1025],
      [3, 900],
      [20, 9000],
      [6, 11],
    ] as const) {
      launch(seqs, length);
    }
    const buckets = [decodeStep(4, 1024), decodeStep(8, 1024), decodeStep(4, 4096), decodeStep(20, 10_000)];
    expect(recorded).toEqual(buckets.flatMap((bucket) => [bucket, bucket]));
    expect(launched).toEqual([1, 1, 2]);
    expect(graphs.numRecorded).toBe(4);
  });

  test("never meets another bucket's graph", () => {
    const { device, launched } = recordingDevice();
    const graphs = new DecodeGraphs(device, bounds);
    const buckets = batchBuckets(bounds.maxSeqs).flatMap((seqs) =>
      lengthBuckets(bounds.maxSeqLen).map((length) => [seqs, length] as const),
    );
    for (const [seqs, length] of [...buckets, ...buckets]) graphs.launch(decodeStep(seqs, length), () => {});
    expect(new Set(launched).size).toBe(buckets.length);
  });

  test("is over when the graphs are given back", () => {
    const { device, destroyed } = recordingDevice();
    const graphs = new DecodeGraphs(device, bounds);
    for (const seqs of [1, 2]) graphs.launch(decodeStep(seqs, 1), () => {});
    graphs.close();
    expect(destroyed).toEqual([1, 2]);
    expect(graphs.numRecorded).toBe(0);
  });
});
