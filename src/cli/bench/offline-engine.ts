/**
 * An engine in this process for offline benchmarks: submits
 * all, steps to the end, keeps the time of every token.
 */

import { unpackChunks } from "../../engine/chunk-codec";
import type { Engine } from "../../engine/engine";
import { loadEngine } from "../../engine/load-engine";
import type { EngineMessage, TokenChunk } from "../../engine/protocol";
import { ModelTokenizer } from "../../tokenizer/model-tokenizer";
import { engineOptions } from "../engine-setup";
import { locateModel, readModelTexts } from "../model-source";
import type { FlagValues } from "../parse-flags";
import { ProgressLine } from "../progress";
import type { Runtime } from "../runtime";
import type { BenchRequest } from "./workload";

export interface OfflineRun {
  readonly elapsedMs: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly generatedTokens: number;
  /** By request: from submission to its first token. */
  readonly firstTokenMs: readonly number[];
  /** Durations of the steps that generated. */
  readonly stepMs: readonly number[];
}

export class OfflineEngine {
  readonly engine: Engine;
  readonly #clockMs: () => number;
  #onChunk: (chunk: TokenChunk) => void = () => {};
  #nextId = 1;

  constructor(flags: FlagValues, runtime: Runtime) {
    this.#clockMs = runtime.clockMs;
    const model = locateModel(flags, runtime);
    const isDummy = flags.text("load-format") === "dummy";
    // Synthetic weights need a configuration and nothing else; their answers end by length.
    const endTokens = isDummy ? [] : new ModelTokenizer(readModelTexts(model.directory)).endTokens;
    const progress = new ProgressLine(runtime);
    let random = 1;
    this.engine = loadEngine(
      engineOptions(flags, runtime, model, endTokens),
      {
        post: (message) => this.#receive(message),
        clock: runtime.clockMs,
        randomUint32: () => random++,
      },
      (stage, fraction) => progress.update(stage, fraction),
    );
    progress.close();
    for (const line of this.engine.report) runtime.err(`${line}\n`);
  }

  run(requests: readonly BenchRequest[]): OfflineRun {
    const startedMs = this.#clockMs();
    const firstTokenMs = new Map<number, number>();
    let generatedTokens = 0;
    let cachedTokens = 0;
    this.#onChunk = ({ id, tokens, cachedTokens: cached }) => {
      generatedTokens += tokens.length;
      cachedTokens += cached ?? 0;
      if (tokens.length > 0 && !firstTokenMs.has(id)) firstTokenMs.set(id, this.#clockMs() - startedMs);
    };
    for (const { tokens, maxTokens } of requests) this.#submit(tokens, maxTokens);
    const stepMs: number[] = [];
    while (this.engine.hasWork) {
      const [beganMs, before] = [this.#clockMs(), generatedTokens];
      this.engine.step();
      if (generatedTokens > before) stepMs.push(this.#clockMs() - beganMs);
    }
    return {
      elapsedMs: this.#clockMs() - startedMs,
      promptTokens: requests.reduce((sum, { tokens }) => sum + tokens.length, 0),
      cachedTokens,
      generatedTokens,
      firstTokenMs: [...firstTokenMs.values()],
      stepMs,
    };
  }

  #submit(tokens: Int32Array, maxTokens: number): void {
    this.engine.handle({
      kind: "submit",
      request: {
        id: this.#nextId++,
        tokens: tokens.slice(),
        numChoices: 1,
        sampling: {
          temperature: 0,
          topP: 1,
          topK: 0,
          minP: 0,
          repetitionPenalty: 1,
          presencePenalty: 0,
          frequencyPenalty: 0,
        },
        stop: { maxTokens, minTokens: 0, ignoreEos: true, stopTokenIds: [] },
      },
    });
  }

  #receive(message: EngineMessage): void {
    if (message.kind !== "step") return;
    unpackChunks(message.packed, this.#onChunk);
    message.chunks.forEach(this.#onChunk);
  }
}
