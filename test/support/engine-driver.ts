/** Drives an engine in this process on a reference case: submit, step, and read what each choice got. */

import type { Device } from "../../ffi/device";
import { unpackChunks } from "../../src/engine/chunk-codec";
import type { Engine } from "../../src/engine/engine";
import type { EngineOptions } from "../../src/engine/engine-options";
import { loadEngine } from "../../src/engine/load-engine";
import type {
  EngineGauges,
  EngineMessage,
  EngineRequest,
  SamplingOptions,
  StopOptions,
  TokenChunk,
} from "../../src/engine/protocol";
import { openCpuDevice } from "./cpu-device";
import { loadReferenceCase } from "./reference-case";
import { noRuntimeKernels } from "./runtime-kernels";

export const greedy: SamplingOptions = {
  temperature: 0,
  topP: 1,
  topK: 0,
  minP: 0,
  repetitionPenalty: 1,
  presencePenalty: 0,
  frequencyPenalty: 0,
};

/** One device for all engines of a test file. */
let device: Device | undefined;

export interface Outcome {
  readonly tokens: number[];
  readonly chunks: TokenChunk[];
  finish: TokenChunk["finish"];
  cachedTokens: number;
  stopTokenId: number | undefined;
}

export interface RequestSettings {
  readonly sampling?: Partial<SamplingOptions>;
  readonly stop?: Partial<StopOptions>;
  readonly request?: Partial<EngineRequest>;
}

export class EngineDriver {
  readonly engine: Engine;
  readonly vocabSize: number;
  readonly device: Device;
  gauges: EngineGauges | undefined;
  readonly #outcomes = new Map<string, Outcome>();
  #nextId = 1;

  private constructor(options: EngineOptions, vocabSize: number, device: Device) {
    this.vocabSize = vocabSize;
    this.device = device;
    let random = 1;
    this.engine = loadEngine(options, {
      post: (message) => this.#receive(message),
      openDevice: () => ({ device, remark: "shared by tests" }),
      clock: () => performance.now(),
      randomUint32: () => (random = (random * 1664525 + 1013904223) >>> 0),
    });
  }

  /** Opens on `on`, or on a CPU device that all engines of a test file share. */
  static open(name: string, options: Partial<EngineOptions> = {}, on?: Device): EngineDriver {
    const { directory, vocabSize } = loadReferenceCase(name);
    if (on === undefined) device ??= openCpuDevice();
    return new EngineDriver(
      { ...defaults, modelDirectory: directory, ...options },
      vocabSize,
      on ?? (device as Device),
    );
  }

  submit(tokens: Int32Array, settings: RequestSettings = {}): number {
    const id = this.#nextId++;
    const request: EngineRequest = {
      id,
      tokens: tokens.slice(),
      numChoices: 1,
      sampling: { ...greedy, ...settings.sampling },
      stop: { maxTokens: 24, minTokens: 0, ignoreEos: true, stopTokenIds: [], ...settings.stop },
      ...settings.request,
    };
    this.engine.handle({ kind: "submit", request });
    return id;
  }

  outcome(id: number, choice = 0): Outcome {
    const key = `${id}/${choice}`;
    const known = this.#outcomes.get(key);
    if (known !== undefined) return known;
    const fresh: Outcome = {
      tokens: [],
      chunks: [],
      finish: undefined,
      cachedTokens: -1,
      stopTokenId: undefined,
    };
    this.#outcomes.set(key, fresh);
    return fresh;
  }

  /** Steps until nothing is left to do; throws when that takes too long. */
  run(maxSteps = 10_000): void {
    for (let steps = 0; this.engine.hasWork; steps++) {
      if (steps >= maxSteps) throw new Error(`still busy after ${maxSteps} steps`);
      this.engine.step();
    }
  }

  /** Walks the books to the end; a leak throws. */
  check(): void {
    while (!this.engine.checkSlice());
  }

  /** Submits one request, runs it alone and returns what it got. */
  generate(tokens: Int32Array, settings: RequestSettings = {}): Outcome {
    const id = this.submit(tokens, settings);
    this.run();
    return this.outcome(id);
  }

  #receive(message: EngineMessage): void {
    if (message.kind !== "step") return;
    if (message.gauges !== undefined) this.gauges = message.gauges;
    unpackChunks(message.packed, (chunk) => this.#take(chunk));
    for (const chunk of message.chunks) this.#take(chunk);
  }

  #take(chunk: TokenChunk): void {
    const outcome = this.outcome(chunk.id, chunk.choice);
    outcome.tokens.push(...chunk.tokens);
    outcome.chunks.push(chunk);
    if (chunk.cachedTokens !== undefined) outcome.cachedTokens = chunk.cachedTokens;
    if (chunk.finish !== undefined) outcome.finish = chunk.finish;
    if (chunk.stopTokenId !== undefined) outcome.stopTokenId = chunk.stopTokenId;
  }
}

const defaults: Omit<EngineOptions, "modelDirectory"> = {
  loadFormat: "dummy",
  seed: 0,
  device: "cpu",
  cpuLibrary: undefined,
  cudaLibrary: undefined,
  dtype: "auto",
  kvCacheDtype: "auto",
  maxModelLen: 1024,
  maxNumSeqs: 16,
  maxNumBatchedTokens: 512,
  prefixGranularity: 64,
  numLcmBlocks: 64,
  gpuMemoryUtilization: 0.9,
  cpuCacheBytes: undefined,
  enablePrefixCaching: true,
  enableMixedBatch: false,
  enableOverlap: undefined,
  enableGraphs: true,
  threads: 1,
  kernelPageSize: undefined,
  debugChecks: true,
  endTokens: [257],
  runtimeKernels: noRuntimeKernels,
  cublasLt: undefined,
};
