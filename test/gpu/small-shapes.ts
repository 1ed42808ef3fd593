/** Launches every kernel once on small shapes, for compute-sanitizer to watch; checks nothing itself. */
import type { Device, Dtype } from "../../ffi/device";
import { kernelCases } from "../kernels/cases";
import { runCase } from "../kernels/cases/kernel-case";
import { setCEnvironment } from "../kernels/support/open-device";
import { Random } from "../kernels/support/random";
import { type AttentionShape, attentionOperands, runAttention } from "./support/attention-shape";
import { openCuda } from "./support/devices";
import { type ExpertsShape, expertOperands, runExperts } from "./support/experts";
import { randomProduct } from "./support/products";
import { sampleBatch, samplingBatch } from "./support/sampling";

const dims = [
  [64, 64],
  [128, 128],
  [192, 128],
  [192, 192],
  [256, 256],
] as const;

const shapes: readonly AttentionShape[] = dims.flatMap(([headDim, vHeadDim]) => {
  const shape = { numQHeads: 8, numKvHeads: 2, headDim, vHeadDim, pageSize: 16 };
  return [
    { ...shape, seqLens: [700, 0, 33], queries: 1, holes: 0.2, sinks: true },
    { ...shape, seqLens: [90, 40], queries: [90, 17], windowLeft: 50, softcap: 20 },
    { ...shape, seqLens: [1300, 40], queries: [24, 3], holes: 0.2, sinks: true }, // split
  ];
});

/**
 * On every kernel: few assignments, some and many of an expert, and a plan of two slices; deep enough to use
 * every place of the rings again.
 */
const experts: readonly ExpertsShape[] = [3, 40, 100, 1100].map((rows) => {
  const options = { crowd: 0.5, biases: true, residual: true, activation: "silu", gap: 0 } as const;
  return { rows, numExperts: 6, topK: 4, hidden: 448, inner: 384, ...options };
});

let launched = 0;
function launchExperts(device: Device): void {
  for (const shape of experts) {
    runExperts(device, shape, expertOperands(shape, 1));
    launched += 1;
  }
}

const device = openCuda({ debugChecks: true });
for (const kernelCase of kernelCases) {
  for (const dtype of ["float32", "bfloat16"] as const) {
    runCase(kernelCase, device, dtype);
    launched += 1;
  }
}
for (const shape of shapes) {
  for (const dtype of ["float32", "bfloat16"] satisfies Dtype[]) {
    runAttention(device, shape, attentionOperands(shape, 1), dtype, dtype);
    launched += 1;
  }
}
launchExperts(device);
sampleBatch(device, samplingBatch(new Random(1), 8, 3001));
const wide = samplingBatch(new Random(2), 4, 30_000);
for (const topK of [0, 9000]) {
  const params = wide.params.map(() => ({ temperature: 9, topP: 0.95, topK, repetitionPenalty: 1 }));
  sampleBatch(device, { ...wide, params, mask: undefined });
}
device.close();

/** Without cuBLASLt, in narrow and in wide blocks. */
function launchProducts(device: Device): void {
  for (const [rows, outColumns, inColumns] of [
    [200, 300, 640],
    [1700, 2600, 448],
  ] as const) {
    randomProduct(device, {
      rows,
      outColumns,
      inColumns,
      dtype: "bfloat16",
      hasBias: true,
      hasResidual: true,
    });
    launched += 1;
  }
}

const alone = openCuda({ debugChecks: true }, false);
launchProducts(alone);
alone.close();

setCEnvironment("GRANARY_PORTABLE_KERNELS", "1");
const portable = openCuda({ debugChecks: true }, false);
launchExperts(portable);
launchProducts(portable);
portable.close();
console.log(`${launched + 1} launches`);
