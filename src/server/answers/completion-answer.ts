/** A text completion as one JSON object. */
import type { CompletionLogprobs, LogprobFormat } from "../generation/logprob-format";
import {
  appendCompletionLogprob,
  emptyCompletionLogprobs,
  promptLogprobEntries,
} from "../generation/logprob-format";
import type { PromptLogprobs } from "../generation/prompt-logprobs";
import { completionUsage } from "../generation/usage";
import type { AnswerHead } from "./answer-head";
import type { WholeAnswer, WholeChoice } from "./run-whole";

export interface CompletionAnswerOptions {
  readonly format: LogprobFormat;
  readonly prompts: readonly Int32Array[];
  /** What is repeated in front of each prompt's choices; undefined without echo. */
  readonly echoTexts: readonly string[] | undefined;
  readonly choicesPerPrompt: number;
  readonly withLogprobs: boolean;
  readonly withPromptLogprobs: boolean;
  readonly withTokenIds: boolean;
}

export function completionAnswer(head: AnswerHead, answer: WholeAnswer, options: CompletionAnswerOptions) {
  return {
    id: head.id,
    object: "text_completion",
    created: head.created,
    model: head.model,
    choices: answer.choices.map((choice, index) => completionChoice(choice, index, answer, options)),
    usage: completionUsage(answer.usage),
  };
}

function completionChoice(
  choice: WholeChoice,
  index: number,
  answer: WholeAnswer,
  options: CompletionAnswerOptions,
) {
  const promptIndex = Math.floor(index / options.choicesPerPrompt);
  const prompt = options.prompts[promptIndex];
  const promptLogprobs = answer.promptLogprobs[promptIndex];
  return {
    index,
    text: (options.echoTexts?.[promptIndex] ?? "") + choice.text,
    logprobs: options.withLogprobs ? choiceLogprobs(choice, prompt, promptLogprobs, options) : null,
    finish_reason: choice.finish?.reason ?? null,
    stop_reason: choice.finish?.stopReason ?? null,
    ...(options.withPromptLogprobs
      ? { prompt_logprobs: promptLogprobEntries(options.format, prompt, promptLogprobs) }
      : {}),
    ...(options.withTokenIds ? { token_ids: choice.tokens, prompt_token_ids: [...prompt] } : {}),
  };
}

function choiceLogprobs(
  choice: WholeChoice,
  prompt: Int32Array,
  promptLogprobs: PromptLogprobs,
  options: CompletionAnswerOptions,
): CompletionLogprobs {
  const logprobs = emptyCompletionLogprobs();
  let offset = 0;
  if (options.echoTexts !== undefined) {
    offset = appendPromptLogprobs(logprobs, options.format, prompt, promptLogprobs);
  }
  for (const { tokens, rows } of choice.logprobs) {
    tokens.forEach((id, index) => {
      offset = appendCompletionLogprob(logprobs, options.format, id, { rows, index }, offset);
    });
  }
  return logprobs;
}

/** The echoed prompt's tokens; nothing predicts the first. Returns the offset behind them. */
export function appendPromptLogprobs(
  into: CompletionLogprobs,
  format: LogprobFormat,
  prompt: Int32Array,
  promptLogprobs: PromptLogprobs,
): number {
  let offset = 0;
  prompt.forEach((id, position) => {
    offset = appendCompletionLogprob(into, format, id, promptLogprobs.at(position), offset);
  });
  return offset;
}
