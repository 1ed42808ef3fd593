/**
 * An engine on the card with a full-size model and made-up weights: decode, prefill, cached prefixes, idle
 * gaps. Prints one line a figure. On a machine with a GPU:
 * `bun bench/gpu/engine.ts [--quick] [model directory]`; quick leaves out overlap and graphs switched off.
 */
import { join } from "node:path";
import { percentile } from "../../src/cli/bench/statistics";
import { unpackChunks } from "../../src/engine/chunk-codec";
import type { Engine } from "../../src/engine/engine";
import { loadEngine } from "../../src/engine/load-engine";
import type { TokenChunk } from "../../src/engine/protocol";
import { openCard } from "../support/card";
import { EventProbe } from "./event-probe";

const root = join(import.meta.dir, "../..");
const args = process.argv.slice(2).filter((argument) => argument !== "--quick");
const isQuick = args.length < process.argv.length - 2;
const modelDirectory = args[0] ?? join(root, "bench/models/qwen3-8b");

const device = openCard();
const probe = new EventProbe(device);
const median = (values: readonly number[]) => percentile(values, 0.5);
const print = (name: string, value: number, unit: string) =>
  console.log(`${name.padEnd(52)} ${value.toFixed(3)} ${unit}`);

let onChunk: (chunk: TokenChunk) => void = () => {};
let nextId = 1;

function load(enableOverlap: boolean, enableGraphs: boolean): Engine {
  return loadEngine(
    {
      modelDirectory,
      loadFormat: "dummy",
      seed: 0,
      device: "cuda",
      cpuLibrary: undefined,
      cudaLibrary: undefined,
      dtype: "bfloat16",
      kvCacheDtype: "auto",
      maxModelLen: undefined,
      maxNumSeqs: 128,
      maxNumBatchedTokens: 8192,
      prefixGranularity: 64,
      numLcmBlocks: undefined,
      gpuMemoryUtilization: 0.6,
      cpuCacheBytes: undefined,
      enablePrefixCaching: true,
      enableMixedBatch: false,
      enableOverlap,
      enableGraphs,
      threads: undefined,
      kernelPageSize: undefined,
      debugChecks: false,
      endTokens: [],
      runtimeKernels: { source: undefined, nvrtc: undefined, environment: {} },
      cublasLt: undefined,
    },
    {
      openDevice: () => ({ device, remark: device.info().name }),
      probe,
      clock: () => performance.now(),
      randomUint32: () => 1,
      post: (message) => {
        if (message.kind !== "step") return;
        unpackChunks(message.packed, onChunk);
        message.chunks.forEach(onChunk);
      },
    },
  );
}

let state = 12345;
const randomToken = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return state % 150_000;
};
const randomPrompt = (length: number) => Int32Array.from({ length }, randomToken);

function submit(engine: Engine, tokens: Int32Array, maxTokens: number): number {
  const id = nextId++;
  const sampling = {
    temperature: 0,
    topP: 1,
    topK: 0,
    minP: 0,
    repetitionPenalty: 1,
    presencePenalty: 0,
    frequencyPenalty: 0,
  };
  const stop = { maxTokens, minTokens: 0, ignoreEos: true, stopTokenIds: [] };
  engine.handle({ kind: "submit", request: { id, tokens: tokens.slice(), numChoices: 1, sampling, stop } });
  return id;
}

/** Milliseconds from submission to the first token on the host. */
function firstTokenMs(engine: Engine, tokens: Int32Array): number {
  let atMs = Number.NaN;
  onChunk = (chunk) => {
    if (Number.isNaN(atMs) && chunk.tokens.length > 0) atMs = performance.now();
  };
  const startedMs = performance.now();
  submit(engine, tokens, 1);
  while (engine.hasWork) engine.step();
  return atMs - startedMs;
}

function benchDecode(engine: Engine, batch: number, context: number, label: string): void {
  onChunk = () => {};
  for (let i = 0; i < batch; i++) submit(engine, randomPrompt(context), 160);
  // Prompts and the first decode steps (which record graphs) are not timed.
  const wallMs: number[] = [];
  let decodeSteps = 0;
  probe.take();
  while (engine.hasWork) {
    const beganMs = performance.now();
    engine.step();
    decodeSteps++;
    wallMs.push(performance.now() - beganMs);
  }
  const { stepMs, gapUs } = probe.take();
  const [steps, gaps, walls] = [stepMs.slice(-120, -10), gapUs.slice(-120, -10), wallMs.slice(-120, -10)];
  print(`${label}decode ${batch} x ${context}: device step`, median(steps), "ms");
  print(`${label}decode ${batch} x ${context}: wall step`, median(walls), `ms (${decodeSteps} steps)`);
  print(`${label}decode ${batch} x ${context}: idle gap`, median(gaps), "us");
}

for (const [label, overlap, graphs] of [
  ["", true, true],
  ["no overlap: ", false, true],
  ["eager: ", false, false],
] as const) {
  if (isQuick && label !== "") break;
  const engine = load(overlap, graphs);
  if (label === "") for (const line of engine.report) console.log(line);
  benchDecode(engine, 1, 128, label);
  benchDecode(engine, 64, 1024, label);
  if (label !== "") {
    engine.close();
    continue;
  }
  for (const length of [2048, 16_384]) {
    const times = Array.from({ length: 5 }, () => firstTokenMs(engine, randomPrompt(length)));
    print(`prefill ${length}: first token`, median(times.slice(1)), "ms");
  }
  const prefix = randomPrompt(32_768);
  firstTokenMs(engine, prefix);
  const warm = Array.from({ length: 7 }, () =>
    firstTokenMs(engine, Int32Array.of(...prefix, ...randomPrompt(16))),
  );
  const short = Array.from({ length: 7 }, () => firstTokenMs(engine, randomPrompt(16)));
  print("32,768 cached + 16 new: first token", median(warm), "ms");
  print("16 new: first token", median(short), "ms");
  engine.close();
}
device.close();
