/**
 * The engine in a Worker, as the main thread drives it:
 * commands over a port, chunks dispatched to their requests.
 */
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { GranaryError, messageOf } from "../assert";
import { unpackChunks } from "./chunk-codec";
import type { EngineClient, EngineState, RequestTicket } from "./engine-client";
import type { EngineOptions } from "./engine-options";
import type {
  EngineCommand,
  EngineGauges,
  EngineLimits,
  EngineMessage,
  EngineRequest,
  TokenChunk,
} from "./protocol";
import type { WorkerStart } from "./worker";

type ChunkListener = (chunk: TokenChunk) => void;

interface LiveRequest {
  readonly onChunk: ChunkListener;
  readonly openChoices: Set<number>;
}

export interface EngineWorkerEvents {
  onProgress?(stage: string, fraction: number): void;
  onReady?(report: readonly string[]): void;
  /** The engine is gone without having been asked to. */
  onFailure?(error: string, dump: string | undefined): void;
}

export class EngineWorkerClient implements EngineClient {
  #state: EngineState = "loading";
  #failure: string | undefined;
  #limits: EngineLimits | undefined;
  #gauges: EngineGauges | undefined;
  #lastNewsMs: number;
  #nextId = 1;
  readonly #clock: () => number;
  readonly #events: EngineWorkerEvents;
  readonly #port: MessagePort;
  readonly #worker: Worker;
  readonly #live = new Map<number, LiveRequest>();
  readonly #flushes = new Map<number, (cleared: boolean) => void>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #stopped = Promise.withResolvers<void>();

  constructor(
    workerUrl: URL | string,
    options: EngineOptions,
    clock: () => number,
    events: EngineWorkerEvents = {},
  ) {
    this.#clock = clock;
    this.#events = events;
    this.#lastNewsMs = clock();
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#port.on("message", (message: EngineMessage) => this.#receive(message));
    this.#worker = new Worker(workerUrl);
    this.#worker.on("error", (error) => this.#fail(messageOf(error)));
    this.#worker.on("exit", () => this.#fail("the engine's thread ended"));
    const start: WorkerStart = { options, port: port2 };
    this.#worker.postMessage(start, [port2]);
    // Whoever does not wait for readiness learns of a failure by state.
    this.#ready.promise.catch(() => {});
  }

  get state(): EngineState {
    return this.#state;
  }

  get failure(): string | undefined {
    return this.#failure;
  }

  get gauges(): EngineGauges | undefined {
    return this.#gauges;
  }

  get numLiveRequests(): number {
    return this.#live.size;
  }

  get limits(): EngineLimits {
    if (this.#limits === undefined) throw new GranaryError("engine_not_ready", "the engine is still loading");
    return this.#limits;
  }

  progressAgeMs(): number {
    return this.#live.size === 0 ? 0 : this.#clock() - this.#lastNewsMs;
  }

  /** Resolves when requests can be taken; rejects when loading failed. */
  ready(): Promise<void> {
    return this.#ready.promise;
  }

  submit(request: Omit<EngineRequest, "id">, onChunk: ChunkListener): RequestTicket {
    const id = this.#nextId++;
    if (this.#state !== "ready") throw new GranaryError("engine_not_ready", `the engine is ${this.#state}`);
    if (this.#live.size === 0) this.#lastNewsMs = this.#clock();
    const choices = Array.from({ length: request.numChoices }, (_, index) => index);
    this.#live.set(id, { onChunk, openChoices: new Set(choices) });
    this.#send({ kind: "submit", request: { ...request, id } });
    return {
      id,
      finish: (choice, keptTokens) => {
        if (!this.#live.get(id)?.openChoices.has(choice)) return;
        this.#send({ kind: "finish", id, choice, keptTokens });
        this.#close(id, choice);
      },
      abort: () => {
        if (this.#live.delete(id)) this.#send({ kind: "abort", id });
      },
    };
  }

  flush(): Promise<boolean> {
    const id = this.#nextId++;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    if (this.#state !== "ready") return Promise.resolve(false);
    this.#flushes.set(id, resolve);
    this.#send({ kind: "flush", id });
    return promise;
  }

  async drain(): Promise<void> {
    if (this.#state === "ready") this.#state = "draining";
    if (this.#state === "loading") await this.stop();
    this.#send({ kind: "drain" });
    await this.#stopped.promise;
  }

  /** Ends the engine's thread now; whatever runs ends with an error, at once. */
  async stop(): Promise<void> {
    this.#state = "draining";
    this.#endLive("the server is shutting down");
    await this.#worker.terminate();
    this.#stopped.resolve();
  }

  #send(command: EngineCommand): void {
    this.#port.postMessage(command);
  }

  #receive(message: EngineMessage): void {
    this.#lastNewsMs = this.#clock();
    switch (message.kind) {
      case "progress":
        this.#events.onProgress?.(message.stage, message.fraction);
        break;
      case "ready":
        this.#limits = message.limits;
        this.#state = "ready";
        this.#events.onReady?.(message.report);
        this.#ready.resolve();
        break;
      case "step":
        if (message.gauges !== undefined) this.#gauges = message.gauges;
        unpackChunks(message.packed, (chunk) => this.#dispatch(chunk));
        for (const chunk of message.chunks) this.#dispatch(chunk);
        break;
      case "flushed":
        this.#flushes.get(message.id)?.(message.cleared);
        this.#flushes.delete(message.id);
        break;
      case "stopped":
        if (message.error === undefined) this.#end();
        else this.#fail(message.error, message.dump);
        break;
    }
  }

  #dispatch(chunk: TokenChunk): void {
    const request = this.#live.get(chunk.id);
    if (!request?.openChoices.has(chunk.choice)) return;
    if (chunk.finish !== undefined) this.#close(chunk.id, chunk.choice);
    request.onChunk(chunk);
  }

  #close(id: number, choice: number): void {
    const request = this.#live.get(id);
    request?.openChoices.delete(choice);
    if (request?.openChoices.size === 0) this.#live.delete(id);
  }

  #end(): void {
    this.#port.close();
    void this.#worker.terminate();
    this.#stopped.resolve();
  }

  #endLive(error: string): void {
    const live = [...this.#live];
    this.#live.clear();
    for (const [id, { onChunk, openChoices }] of live) {
      for (const choice of openChoices)
        onChunk({ id, choice, tokens: new Int32Array(), finish: "error", error });
    }
  }

  /** Every open choice ends with an error; nothing is taken any more. */
  #fail(error: string, dump?: string): void {
    if (this.#state === "failed" || this.#state === "draining") {
      this.#endLive(error);
      this.#stopped.resolve();
      return;
    }
    this.#state = "failed";
    this.#failure = error;
    this.#ready.reject(new GranaryError("engine_failed", error));
    this.#endLive(error);
    for (const resolve of this.#flushes.values()) resolve(false);
    this.#end();
    this.#events.onFailure?.(error, dump);
  }
}
