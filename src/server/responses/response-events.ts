/**
 * The typed events of one response in their order, numbered from 0; the same over HTTP and over WebSocket.
 */
import type { ChoiceUpdate } from "../generation/choice-assembler";
import type { ChatTokenLogprobs, LogprobFormat } from "../generation/logprob-format";
import { chatLogprobs } from "../generation/logprob-format";
import type { Usage } from "../generation/usage";
import type { ApiError } from "../http/api-error";
import {
  messageItem,
  type ResponseIdentity,
  type ResponseProgress,
  type ResponseStatus,
  responseObject,
  textPart,
} from "./response-object";

export interface ResponseEvent {
  readonly type: string;
  readonly sequence_number: number;
  readonly [field: string]: unknown;
}

export class ResponseEvents {
  readonly identity: ResponseIdentity;
  readonly #format: LogprobFormat;
  readonly #unixSeconds: () => number;
  readonly #logprobs: ChatTokenLogprobs[] = [];
  #text = "";
  #hasMessage = false;
  #isCut = false;
  #nextNumber = 0;

  constructor(identity: ResponseIdentity, format: LogprobFormat, unixSeconds: () => number) {
    this.identity = identity;
    this.#format = format;
    this.#unixSeconds = unixSeconds;
  }

  get text(): string {
    return this.#text;
  }

  begin(): ResponseEvent[] {
    const response = this.#response("in_progress");
    return [this.#event("response.created", { response }), this.#event("response.in_progress", { response })];
  }

  /** A warm-up has news without a token; it makes no message. */
  update(update: ChoiceUpdate): ResponseEvent[] {
    const events = update.tokens.length === 0 || this.#hasMessage ? [] : this.#openMessage();
    const logprobs =
      this.identity.withLogprobs && update.logprobs !== undefined
        ? chatLogprobs(this.#format, update.tokens, update.logprobs)
        : [];
    for (const entry of logprobs) this.#logprobs.push(entry);
    this.#text += update.text;
    this.#isCut = update.finish?.reason === "length" && this.#hasMessage;
    if (update.text !== "" || logprobs.length > 0) {
      events.push(
        this.#event("response.output_text.delta", { ...this.#place(), delta: update.text, logprobs }),
      );
    }
    return events;
  }

  /** The closing events of a response that came to its end. */
  end(usage: Usage): ResponseEvent[] {
    const status = this.#isCut ? "incomplete" : "completed";
    return this.#close(status, `response.${status}`, { usage });
  }

  /** The closing events of a response that the client stopped. */
  cancel(usage: Usage): ResponseEvent[] {
    return this.#close("cancelled", "response.incomplete", { usage });
  }

  fail(error: ApiError): ResponseEvent[] {
    return [this.#event("response.failed", { response: this.#response("failed", { error }) })];
  }

  /** The response as it ended, for a client that waited for it. */
  final(usage: Usage) {
    return this.#response(this.#isCut ? "incomplete" : "completed", { usage });
  }

  #openMessage(): ResponseEvent[] {
    const item = messageItem(this.identity, this.#progress("in_progress"));
    this.#hasMessage = true;
    return [
      this.#event("response.output_item.added", { output_index: 0, item }),
      this.#event("response.content_part.added", { ...this.#place(), part: textPart("", []) }),
    ];
  }

  #close(status: ResponseStatus, type: string, more: Partial<ResponseProgress>): ResponseEvent[] {
    const response = this.#response(status, more);
    if (!this.#hasMessage) return [this.#event(type, { response })];
    const part = textPart(this.#text, this.#logprobs);
    return [
      this.#event("response.output_text.done", {
        ...this.#place(),
        text: this.#text,
        logprobs: this.#logprobs,
      }),
      this.#event("response.content_part.done", { ...this.#place(), part }),
      this.#event("response.output_item.done", {
        output_index: 0,
        item: messageItem(this.identity, this.#progress(status)),
      }),
      this.#event(type, { response }),
    ];
  }

  #place() {
    return { item_id: this.identity.messageId, output_index: 0, content_index: 0 };
  }

  #response(status: ResponseStatus, more: Partial<ResponseProgress> = {}) {
    const isCompleted = status === "completed";
    return responseObject(this.identity, {
      ...this.#progress(status),
      ...(isCompleted ? { completedAt: this.#unixSeconds() } : {}),
      ...more,
    });
  }

  #progress(status: ResponseStatus): ResponseProgress {
    return { status, text: this.#text, logprobs: this.#logprobs, hasMessage: this.#hasMessage };
  }

  #event(type: string, fields: Record<string, unknown>): ResponseEvent {
    return { type, sequence_number: this.#nextNumber++, ...fields };
  }
}
