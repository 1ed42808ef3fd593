/** A chat completion as server-sent events. The fixed parts are made once; a token costs one string. */
import type { ChoiceUpdate } from "../generation/choice-assembler";
import type { Generation } from "../generation/generation";
import type { LogprobFormat } from "../generation/logprob-format";
import { chatLogprobs } from "../generation/logprob-format";
import { completionUsage } from "../generation/usage";
import type { AnswerHead } from "./answer-head";
import type { StreamFormat } from "./run-stream";
import type { StreamUsage } from "./stream-usage";

export interface ChatStreamOptions {
  readonly format: LogprobFormat;
  readonly prompt: Int32Array;
  readonly withLogprobs: boolean;
  readonly withTokenIds: boolean;
  readonly usage: StreamUsage;
}

export class ChatStream implements StreamFormat {
  readonly #options: ChatStreamOptions;
  readonly #prefix: string;
  readonly #hasRole: boolean[] = [];
  #isFirst = true;

  constructor(head: AnswerHead, options: ChatStreamOptions) {
    this.#options = options;
    const { id, created, model } = head;
    const fields = JSON.stringify({ id, object: "chat.completion.chunk", created, model });
    this.#prefix = `data: ${fields.slice(0, -1)},"choices":[`;
  }

  update(index: number, update: ChoiceUpdate, generation: Generation): string {
    const { withLogprobs, withTokenIds } = this.#options;
    const suffix = this.#suffix(generation);
    let events = "";
    if (this.#hasRole[index] !== true) {
      this.#hasRole[index] = true;
      events = this.#chunk(index, '{"role":"assistant","content":""}', ',"logprobs":null', "null", suffix);
    }
    const { text, tokens, finish } = update;
    if (text === "" && finish === undefined && !withLogprobs && !withTokenIds) return events;
    const delta = text === "" ? "{}" : `{"content":${JSON.stringify(text)}}`;
    const ids = withTokenIds ? `,"token_ids":[${tokens.join(",")}]` : "";
    const extras = `,"logprobs":${this.#logprobs(update)}${ids}`;
    const reason =
      finish === undefined ? "null" : `"${finish.reason}","stop_reason":${JSON.stringify(finish.stopReason)}`;
    return events + this.#chunk(index, delta, extras, reason, suffix);
  }

  end(generation: Generation): string {
    const usage = this.#options.usage.atEnd
      ? `${this.#prefix}],"usage":${JSON.stringify(completionUsage(generation.usage))}}\n\n`
      : "";
    return `${usage}data: [DONE]\n\n`;
  }

  #chunk(index: number, delta: string, extras: string, reason: string, suffix: string): string {
    const choice = `{"index":${index},"delta":${delta}${extras},"finish_reason":${reason}}`;
    return `${this.#prefix}${choice}]${this.#promptIds()}${suffix}`;
  }

  #logprobs(update: ChoiceUpdate): string {
    if (!this.#options.withLogprobs || update.logprobs === undefined || update.tokens.length === 0)
      return "null";
    const content = chatLogprobs(this.#options.format, update.tokens, update.logprobs);
    return JSON.stringify({ content, refusal: null });
  }

  /** With the first chunk of all, where ids are wanted. */
  #promptIds(): string {
    if (!this.#isFirst) return "";
    this.#isFirst = false;
    return this.#options.withTokenIds ? `,"prompt_token_ids":[${this.#options.prompt.join(",")}]` : "";
  }

  #suffix(generation: Generation): string {
    const { atEnd, inEveryChunk } = this.#options.usage;
    if (inEveryChunk) return `,"usage":${JSON.stringify(completionUsage(generation.usage))}}\n\n`;
    return atEnd ? ',"usage":null}\n\n' : "}\n\n";
  }
}
