/**
 * Attention kernels compiled on the machine with the card: head dimensions that the library lacks, those it
 * only pads, and a whole model on them. Needs NVRTC.
 */
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Device, type Dtype, dtypeBytes } from "../../ffi/device";
import { Nvrtc } from "../../ffi/nvrtc";
import { flattenSources, runtimeKernelSources } from "../../scripts/flatten";
import { AttentionKernels } from "../../src/runtime-kernels/attention-kernels";
import { CubinCache } from "../../src/runtime-kernels/cubin-cache";
import { KernelCompiler } from "../../src/runtime-kernels/kernel-compiler";
import { EngineDriver } from "../support/engine-driver";
import { type AttentionShape, attentionOperands, runAttention } from "./support/attention-shape";
import { relativeError } from "./support/closeness";
import { hasCard, openCpu, openCuda, testSeed } from "./support/devices";

setDefaultTimeout(60_000);

const nvrtc = Nvrtc.search(process.env.GRANARY_NVRTC).library;
const source = flattenSources(join(import.meta.dir, "../../cuda/kernels"), runtimeKernelSources);
const bounds: Readonly<Record<string, number>> = { bfloat16: 8e-3, float32: 2e-6 };
/** Pages that the copy engine does not take, so that tile kernels come to run on Hopper too. */
const heads = { numQHeads: 12, numKvHeads: 2, pageSize: 24 };

const cacheDirectory = mkdtempSync(join(tmpdir(), "granary-test-"));
afterAll(() => rmSync(cacheDirectory, { recursive: true }));

/** Compiles from `text`, each kernel once. */
function kernelsOn(device: Device, text: string): AttentionKernels {
  const compilation = (architecture: string) => {
    const cache = new CubinCache(cacheDirectory);
    const parts = { source: text, architecture, compiler: nvrtc as Nvrtc, cache };
    const compiler = new KernelCompiler(parts);
    return (kernel: string) => compiler.compile(kernel);
  };
  return new AttentionKernels(device, compilation, () => performance.now());
}

function provide(kernels: AttentionKernels, shape: AttentionShape, dtype: Dtype): void {
  const rowBytes = shape.pageSize * shape.numKvHeads * dtypeBytes[dtype];
  kernels.provide({
    ...shape,
    dtype,
    kvDtype: dtype,
    kPageStrideBytes: rowBytes * shape.headDim,
    vPageStrideBytes: rowBytes * shape.vHeadDim,
  });
}

const uses = [
  { title: "in decode", seqLens: [700, 0, 33, 1500], queries: 1, holes: 0.2, sinks: true },
  { title: "in prefill", seqLens: [400, 130], queries: [400, 17], windowLeft: 200, softcap: 20 },
  { title: "behind a long prefix", seqLens: [6000], queries: [9] },
] as const;

describe.skipIf(!hasCard() || nvrtc === undefined)("kernels compiled at run time", () => {
  let cuda: Device;
  let cpu: Device;
  beforeAll(() => {
    cpu = openCpu();
  });
  afterAll(() => cpu.close());
  beforeEach(() => {
    cuda = openCuda();
  });
  afterEach(() => cuda.close());

  for (const [headDim, vHeadDim] of [
    [512, 512],
    [320, 256],
    [257, 300],
    [80, 80],
    [96, 72],
    [112, 112],
    [160, 160],
  ] as const) {
    for (const { title, ...use } of uses) {
      test(`serve heads of ${headDim} and ${vHeadDim} ${title}`, () => {
        const shape: AttentionShape = { ...heads, headDim, vHeadDim, ...use };
        const operands = attentionOperands(shape, testSeed);
        const kernels = kernelsOn(cuda, source);
        for (const dtype of ["bfloat16", "float32"] as const) {
          provide(kernels, shape, dtype);
          const expected = runAttention(cpu, shape, operands, "float32", dtype);
          const actual = runAttention(cuda, shape, operands, dtype, dtype);
          expect(relativeError(actual, expected)).toBeLessThan(bounds[dtype] as number);
        }
      });
    }
  }

  for (const [title, dim, queries, value] of [
    ["scalar", 512, 1, "state.output[i] * scale"],
    ["decode", 80, 1, "value * scale"],
    ["prefill", 80, 90, "state.output[column][2 * row] * scale"],
  ] as const) {
    test(`are what runs: a ${title} kernel from a changed source gives the changed result`, () => {
      const shape: AttentionShape = { ...heads, headDim: dim, vHeadDim: dim, seqLens: [100], queries };
      const operands = attentionOperands(shape, testSeed);
      const changed = source.replace(value, "0.0f");
      expect(changed).not.toBe(source);
      const before = runAttention(cpu, shape, operands, "float32", "bfloat16");
      provide(kernelsOn(cuda, changed), shape, "bfloat16");
      const after = runAttention(cuda, shape, operands, "bfloat16", "bfloat16");
      expect(relativeError(after, before)).toBeGreaterThan(0.5);
    });
  }

  test("are missed with a clear error, and their absence harms nothing else", () => {
    const shape: AttentionShape = { ...heads, headDim: 512, vHeadDim: 512, seqLens: [100], queries: 1 };
    const operands = attentionOperands(shape, testSeed);
    expect(() => runAttention(cuda, shape, operands, "bfloat16", "bfloat16")).toThrow(
      "no kernel was compiled for head dimension 512",
    );
    const common = { ...shape, headDim: 128, vHeadDim: 128 };
    runAttention(cuda, common, attentionOperands(common, testSeed), "bfloat16", "bfloat16");
  });

  test("may be handed in damaged: that is refused and the card goes on", () => {
    const values = { kind: 0, dim: 512, stages: 0, dtype: 0, kvDtype: 0, isWide: 1 };
    expect(() => cuda.loadAttentionKernel(new Uint8Array(4096), values)).toThrow("load_attention_kernel");
    cuda.synchronize();
  });

  test("carry a whole model, in graphs too, compiled once and cached for the next start", () => {
    const directory = mkdtempSync(join(tmpdir(), "granary-test-"));
    const config = {
      model_type: "qwen3",
      vocab_size: 320,
      hidden_size: 64,
      intermediate_size: 96,
      num_hidden_layers: 2,
      num_attention_heads: 4,
      num_key_value_heads: 2,
      head_dim: 320,
      rms_norm_eps: 1e-5,
      max_position_embeddings: 1024,
    };
    writeFileSync(join(directory, "config.json"), JSON.stringify(config));
    const prompt = Int32Array.from({ length: 300 }, (_, i) => (i * 37) % 320);
    const common = { modelDirectory: directory, maxModelLen: 512, dtype: "float32" } as const;
    const onCpu = EngineDriver.open("llama", common);
    const expected = onCpu.generate(prompt).tokens;
    const runtimeKernels = {
      source: join(directory, "kernels.cuh"),
      nvrtc: process.env.GRANARY_NVRTC,
      environment: { XDG_CACHE_HOME: directory },
    };
    writeFileSync(runtimeKernels.source, source);
    for (const origin of ["1 compiled", "1 from the cache"]) {
      const driver = EngineDriver.open("llama", { ...common, device: "cuda", runtimeKernels }, cuda);
      expect(driver.generate(prompt).tokens).toEqual(expected);
      expect(driver.generate(prompt).cachedTokens).toBe(256);
      expect(driver.engine.report.join("\n")).toContain(origin);
      driver.check();
    }
    rmSync(directory, { recursive: true });
  });
});
