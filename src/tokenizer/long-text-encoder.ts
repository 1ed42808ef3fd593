/**
 * The main thread's side of the tokenizer's Worker: starts it when the first long text comes, numbers texts
 * and answers.
 */
import { GranaryError } from "../assert";
import { maxPendingTokenizations } from "../limits";
import type { PromptPiece } from "./added-tokens";
import type { JsonObject } from "./json";

export type WorkerRequest =
  | { readonly kind: "load"; readonly tokenizer: JsonObject; readonly tokenizerConfig: JsonObject }
  | { readonly kind: "text"; readonly id: number; readonly limit: number; readonly text: string }
  | {
      readonly kind: "pieces";
      readonly id: number;
      /** More tokens than this are refused. */
      readonly limit: number;
      readonly pieces: readonly PromptPiece[];
    };

export type WorkerReply =
  | { readonly id: number; readonly ids: Int32Array }
  | { readonly id: number; readonly error: string; readonly code: string };

interface Waiter {
  resolve(ids: Int32Array): void;
  reject(error: Error): void;
}

export class LongTextEncoder {
  readonly #workerUrl: string | URL;
  readonly #load: WorkerRequest;
  readonly #waiters = new Map<number, Waiter>();
  #worker: Worker | undefined;
  #nextId = 1;

  /** `workerUrl` leads to tokenizer-worker.ts; in the executable only its entry point can make such URLs. */
  constructor(workerUrl: string | URL, tokenizer: JsonObject, tokenizerConfig: JsonObject) {
    this.#workerUrl = workerUrl;
    this.#load = { kind: "load", tokenizer, tokenizerConfig };
  }

  /** Rejects with code context_length_exceeded when the text surely has more than `limit` tokens. */
  encodeText(text: string, limit: number): Promise<Int32Array> {
    return this.#ask((id) => ({ kind: "text", id, limit, text }));
  }

  encodePieces(pieces: readonly PromptPiece[], limit: number): Promise<Int32Array> {
    return this.#ask((id) => ({ kind: "pieces", id, limit, pieces }));
  }

  close(): void {
    this.#fail("the tokenizer was closed");
  }

  #ask(request: (id: number) => WorkerRequest): Promise<Int32Array> {
    if (this.#waiters.size >= maxPendingTokenizations) {
      throw new GranaryError("tokenizer_overloaded", "too many long texts wait to be tokenized");
    }
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<Int32Array>();
    this.#waiters.set(id, { resolve, reject });
    this.#worker ??= this.#start();
    this.#worker.postMessage(request(id));
    return promise;
  }

  #start(): Worker {
    const worker = new Worker(this.#workerUrl) as Worker & { unref(): void };
    worker.unref();
    worker.onmessage = ({ data }: MessageEvent<WorkerReply>) => {
      const waiter = this.#waiters.get(data.id);
      this.#waiters.delete(data.id);
      if ("ids" in data) waiter?.resolve(data.ids);
      else waiter?.reject(new GranaryError(data.code, data.error));
    };
    worker.onerror = (event) => this.#fail(`the tokenizer's Worker failed: ${event.message}`);
    worker.postMessage(this.#load);
    return worker;
  }

  /** Ends every wait; the next text starts a new Worker. */
  #fail(reason: string): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    const waiters = [...this.#waiters.values()];
    this.#waiters.clear();
    for (const waiter of waiters) waiter.reject(new GranaryError("tokenizer_failed", reason));
  }
}
