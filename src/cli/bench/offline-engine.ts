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
  /** Tokens of the requests that were answered in full, as are all counts here. */
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly generatedTokens: number;
  /** By request: from submission to its first token. */
  readonly firstTokenMs: readonly number[];
  /** Why each of the others was not. */
  readonly failures: readonly string[];
  /** Steps in which tokens came and none was the first of its request, in order. */
  readonly decodeSteps: readonly DecodeStep[];
}

export interface DecodeStep {
  readonly durationMs: number;
  readonly numTokens: number;
}

/** What has come back for one request. */
class Answer {
  readonly request: BenchRequest;
  cachedTokens = 0;
  generatedTokens = 0;
  firstTokenMs = Number.NaN;
  /** Cleared by the end that was asked for. */
  failure: string | undefined = "the engine never ended it";

  constructor(request: BenchRequest) {
    this.request = request;
  }

  take({ tokens, cachedTokens, finish, error }: TokenChunk, nowMs: number): void {
    if (tokens.length > 0 && this.generatedTokens === 0) this.firstTokenMs = nowMs;
    this.generatedTokens += tokens.length;
    this.cachedTokens += cachedTokens ?? 0;
    if (finish === undefined) return;
    const isRefused = finish === "error" || finish === "abort";
    if (isRefused) this.failure = error ?? `it ended by ${finish}`;
    else this.failure = this.generatedTokens === 0 ? "it gave no token" : undefined;
  }
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
    const answers = new Map(requests.map((request) => [this.#submit(request), new Answer(request)]));
    let [numTokens, isDecode] = [0, true];
    this.#onChunk = (chunk) => {
      const answer = answers.get(chunk.id);
      if (chunk.tokens.length > 0 && answer?.generatedTokens === 0) isDecode = false;
      numTokens += chunk.tokens.length;
      answer?.take(chunk, this.#clockMs() - startedMs);
    };
    const decodeSteps: DecodeStep[] = [];
    while (this.engine.hasWork) {
      [numTokens, isDecode] = [0, true];
      const beganMs = this.#clockMs();
      this.engine.step();
      if (isDecode && numTokens > 0) decodeSteps.push({ durationMs: this.#clockMs() - beganMs, numTokens });
    }
    const elapsedMs = this.#clockMs() - startedMs;
    const complete = [...answers.values()].filter(({ failure }) => failure === undefined);
    const sum = (pick: (answer: Answer) => number) => complete.reduce((total, it) => total + pick(it), 0);
    return {
      elapsedMs,
      promptTokens: sum(({ request }) => request.tokens.length),
      cachedTokens: sum(({ cachedTokens }) => cachedTokens),
      generatedTokens: sum(({ generatedTokens }) => generatedTokens),
      firstTokenMs: complete.map(({ firstTokenMs }) => firstTokenMs),
      failures: [...answers.values()].flatMap(({ failure }) => failure ?? []),
      decodeSteps,
    };
  }

  /** Returns the id it gave the request. */
  #submit({ tokens, maxTokens }: BenchRequest): number {
    const id = this.#nextId++;
    this.engine.handle({
      kind: "submit",
      request: {
        id,
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
    return id;
  }

  #receive(message: EngineMessage): void {
    if (message.kind !== "step") return;
    unpackChunks(message.packed, this.#onChunk);
    message.chunks.forEach(this.#onChunk);
  }
}
