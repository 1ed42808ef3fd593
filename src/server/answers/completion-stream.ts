/** A text completion as server-sent events. */
import type { ChoiceUpdate } from "../generation/choice-assembler";
import type { Generation } from "../generation/generation";
import type { CompletionLogprobs, LogprobFormat } from "../generation/logprob-format";
import { appendCompletionLogprob, emptyCompletionLogprobs } from "../generation/logprob-format";
import { completionUsage } from "../generation/usage";
import type { AnswerHead } from "./answer-head";
import { appendPromptLogprobs } from "./completion-answer";
import type { StreamFormat } from "./run-stream";
import type { StreamUsage } from "./stream-usage";

export interface CompletionStreamOptions {
  readonly format: LogprobFormat;
  readonly prompts: readonly Int32Array[];
  /** What is repeated in front of each prompt's choices; undefined without echo. */
  readonly echoTexts: readonly string[] | undefined;
  readonly choicesPerPrompt: number;
  readonly withLogprobs: boolean;
  readonly withTokenIds: boolean;
  readonly usage: StreamUsage;
}

interface ChoiceState {
  textOffset: number;
}

export class CompletionStream implements StreamFormat {
  readonly #options: CompletionStreamOptions;
  readonly #prefix: string;
  readonly #states: (ChoiceState | undefined)[] = [];

  constructor(head: AnswerHead, options: CompletionStreamOptions) {
    this.#options = options;
    const { id, created, model } = head;
    const fields = JSON.stringify({ id, object: "text_completion", created, model });
    this.#prefix = `data: ${fields.slice(0, -1)},"choices":[`;
  }

  update(index: number, update: ChoiceUpdate, generation: Generation): string {
    const { withLogprobs, withTokenIds } = this.#options;
    const isFirst = this.#states[index] === undefined;
    const state = this.#states[index] ?? { textOffset: 0 };
    this.#states[index] = state;
    const echo = isFirst ? this.#echo(index, state, generation) : "";
    const { text, tokens, finish } = update;
    if (text === "" && finish === undefined && !withLogprobs && !withTokenIds) return echo;
    const ids = withTokenIds ? `,"token_ids":[${tokens.join(",")}]${this.#promptIds(index, isFirst)}` : "";
    const logprobs = withLogprobs ? JSON.stringify(this.#logprobs(update, state)) : "null";
    const reason =
      finish === undefined ? "null" : `"${finish.reason}","stop_reason":${JSON.stringify(finish.stopReason)}`;
    return echo + this.#chunk(index, text, `${logprobs}${ids}`, reason, generation);
  }

  end(generation: Generation): string {
    const usage = this.#options.usage.atEnd
      ? `${this.#prefix}],"usage":${JSON.stringify(completionUsage(generation.usage))}}\n\n`
      : "";
    return `${usage}data: [DONE]\n\n`;
  }

  /** The prompt in front of the choice's first news; by then all of its positions have been computed. */
  #echo(index: number, state: ChoiceState, generation: Generation): string {
    const { echoTexts, choicesPerPrompt, format, withLogprobs } = this.#options;
    if (echoTexts === undefined) return "";
    const promptIndex = Math.floor(index / choicesPerPrompt);
    let logprobs = "null";
    if (withLogprobs) {
      const entries = emptyCompletionLogprobs();
      const prompt = this.#options.prompts[promptIndex];
      state.textOffset = appendPromptLogprobs(
        entries,
        format,
        prompt,
        generation.promptLogprobs[promptIndex],
      );
      logprobs = JSON.stringify(entries);
    }
    return this.#chunk(index, echoTexts[promptIndex], logprobs, "null", generation);
  }

  #logprobs(update: ChoiceUpdate, state: ChoiceState): CompletionLogprobs | null {
    const { tokens, logprobs: rows } = update;
    if (rows === undefined || tokens.length === 0) return null;
    const entries = emptyCompletionLogprobs();
    tokens.forEach((id, index) => {
      state.textOffset = appendCompletionLogprob(
        entries,
        this.#options.format,
        id,
        { rows, index },
        state.textOffset,
      );
    });
    return entries;
  }

  #promptIds(index: number, isFirst: boolean): string {
    const prompt = this.#options.prompts[Math.floor(index / this.#options.choicesPerPrompt)];
    return isFirst ? `,"prompt_token_ids":[${prompt.join(",")}]` : "";
  }

  #chunk(index: number, text: string, logprobs: string, reason: string, generation: Generation): string {
    const { atEnd, inEveryChunk } = this.#options.usage;
    const said = `"text":${JSON.stringify(text)},"logprobs":${logprobs}`;
    const choice = `{"index":${index},${said},"finish_reason":${reason}}`;
    const usage = inEveryChunk ? JSON.stringify(completionUsage(generation.usage)) : "null";
    return `${this.#prefix}${choice}]${atEnd ? `,"usage":${usage}` : ""}}\n\n`;
  }
}
