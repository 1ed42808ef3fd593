/**
 * One request's generation: its prompts are submitted, every chunk goes through the choice's assembler, and
 * a listener is told. Choices are numbered prompt by prompt. Knows nothing of HTTP or of answer formats.
 */
import type { EngineClient, RequestTicket } from "../../engine/engine-client";
import type { SamplingOptions, TokenChunk } from "../../engine/protocol";
import type { ModelTokenizer } from "../../tokenizer/model-tokenizer";
import type { Log } from "../dependencies";
import { ApiError } from "../http/api-error";
import { toApiError } from "../http/error-handler";
import type { RequestTimer } from "../metrics/request-timer";
import type { ServerMetrics } from "../metrics/server-metrics";
import type { ChoiceOptions, ChoiceUpdate } from "./choice-assembler";
import { ChoiceAssembler } from "./choice-assembler";
import { PromptLogprobs } from "./prompt-logprobs";
import type { Usage } from "./usage";

/** What a route asks for, with everything checked. */
export interface GenerationRequest {
  readonly prompts: readonly Int32Array[];
  /** Choices of each prompt. */
  readonly numChoices: number;
  readonly sampling: SamplingOptions;
  /** Generated tokens at most, for each prompt. */
  readonly maxTokens: readonly number[];
  readonly stopTokenIds: readonly number[];
  readonly ignoreEos: boolean;
  readonly choice: ChoiceOptions;
  readonly logprobs: number | undefined;
  readonly promptLogprobs: number | undefined;
  readonly namespaceRoot: Uint8Array | undefined;
}

export interface GenerationListener {
  /** News of choice `index`. Called at once for every chunk. */
  onUpdate(index: number, update: ChoiceUpdate): void;
  /** Every choice has ended. */
  onEnd(): void;
  /** The engine could not go on; every choice has ended. */
  onError(error: ApiError): void;
}

export interface GenerationDependencies {
  readonly engine: EngineClient;
  readonly tokenizer: ModelTokenizer;
  readonly metrics: ServerMetrics;
  readonly log: Log;
}

export class Generation {
  readonly promptLogprobs: readonly PromptLogprobs[];
  readonly #request: GenerationRequest;
  readonly #listener: GenerationListener;
  readonly #dependencies: GenerationDependencies;
  readonly #timer: RequestTimer;
  readonly #choices: readonly ChoiceAssembler[];
  readonly #tickets: RequestTicket[] = [];
  readonly #cachedTokens: number[];
  #numOpenChoices: number;
  #isOver = false;

  constructor(
    dependencies: GenerationDependencies,
    request: GenerationRequest,
    timer: RequestTimer,
    listener: GenerationListener,
  ) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#listener = listener;
    this.#timer = timer;
    const { vocabulary, endTokens } = dependencies.tokenizer;
    const endTokenSet = new Set(endTokens);
    const numChoices = request.prompts.length * request.numChoices;
    this.#choices = Array.from(
      { length: numChoices },
      () => new ChoiceAssembler(vocabulary, endTokenSet, request.choice),
    );
    this.#cachedTokens = request.prompts.map(() => 0);
    this.promptLogprobs = request.prompts.map(
      (prompt) => new PromptLogprobs(request.promptLogprobs === undefined ? 0 : prompt.length),
    );
    this.#numOpenChoices = numChoices;
  }

  /**
   * Submits every prompt, unless it was aborted before. The listener is only called after this returns, or
   * not at all.
   */
  start(): void {
    if (this.#isOver) return;
    const { prompts, sampling, numChoices, namespaceRoot, logprobs, promptLogprobs } = this.#request;
    prompts.forEach((tokens, promptIndex) => {
      const ticket = this.#dependencies.engine.submit(
        {
          tokens,
          numChoices,
          sampling,
          stop: {
            maxTokens: this.#request.maxTokens[promptIndex],
            minTokens: this.#request.choice.minTokens,
            ignoreEos: this.#request.ignoreEos,
            stopTokenIds: this.#request.stopTokenIds,
          },
          ...(logprobs === undefined ? {} : { logprobs }),
          ...(promptLogprobs === undefined ? {} : { promptLogprobs, maxCachedPrefixTokens: 0 }),
          ...(namespaceRoot === undefined ? {} : { namespaceRoot }),
        },
        (chunk) => this.#receive(promptIndex, chunk),
      );
      this.#tickets.push(ticket);
    });
  }

  /** Ends every choice without another word to the listener. */
  abort(): void {
    if (this.#isOver) return;
    this.#end("abort");
    for (const ticket of this.#tickets) ticket.abort();
  }

  get usage(): Usage {
    return {
      promptTokens: this.#request.prompts.reduce((sum, prompt) => sum + prompt.length, 0),
      cachedTokens: this.#cachedTokens.reduce((sum, count) => sum + count, 0),
      completionTokens: this.#choices.reduce((sum, choice) => sum + choice.numTokens, 0),
    };
  }

  /** One request's trouble is its own: the engine's messages go on to all others. */
  #receive(promptIndex: number, chunk: TokenChunk): void {
    if (this.#isOver) return;
    try {
      this.#onChunk(promptIndex, chunk);
    } catch (error) {
      this.#end("error");
      for (const ticket of this.#tickets) ticket.abort();
      this.#listener.onError(toApiError("UNKNOWN", error, this.#dependencies.log));
    }
  }

  #onChunk(promptIndex: number, chunk: TokenChunk): void {
    if (chunk.choice === 0 && chunk.cachedTokens !== undefined) {
      this.#cachedTokens[promptIndex] = chunk.cachedTokens;
    }
    if (chunk.promptLogprobs !== undefined) this.promptLogprobs[promptIndex].add(chunk.promptLogprobs);
    if (chunk.tokens.length === 0 && chunk.finish === undefined) return;
    const index = promptIndex * this.#request.numChoices + chunk.choice;
    const choice = this.#choices[index];
    const update = choice.push(chunk);
    if (update === undefined) return;
    this.#timer.onTokens(index, update.tokens.length);
    const { finish } = update;
    if (finish?.reason === "error" || finish?.reason === "abort") {
      this.#fail(finish.error ?? "The engine ended this request.");
      return;
    }
    if (finish?.stoppedByString === true) {
      this.#tickets[promptIndex].finish(chunk.choice, choice.numTokens);
    }
    this.#listener.onUpdate(index, update);
    if (finish === undefined || this.#isOver) return;
    this.#timer.onFinish(finish.reason);
    this.#numOpenChoices -= 1;
    if (this.#numOpenChoices > 0) return;
    this.#end("end");
    this.#listener.onEnd();
  }

  #fail(message: string): void {
    this.#end("error");
    for (const ticket of this.#tickets) ticket.abort();
    const { engine } = this.#dependencies;
    const isLeaving = engine.state === "draining";
    this.#listener.onError(
      isLeaving
        ? new ApiError(503, message, { type: "service_unavailable_error", code: "service_unavailable" })
        : new ApiError(500, message, { code: "engine_error" }),
    );
  }

  #end(outcome: "end" | "error" | "abort"): void {
    this.#isOver = true;
    this.#timer.onEnd(outcome);
  }
}
