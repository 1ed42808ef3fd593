/** A chat completion as one JSON object. */
import type { LogprobFormat, PromptLogprobEntry } from "../generation/logprob-format";
import { chatLogprobs, promptLogprobEntries } from "../generation/logprob-format";
import { completionUsage } from "../generation/usage";
import type { AnswerHead } from "./answer-head";
import type { WholeAnswer, WholeChoice } from "./run-whole";

export interface ChatAnswerOptions {
  readonly format: LogprobFormat;
  readonly prompt: Int32Array;
  readonly withLogprobs: boolean;
  readonly withPromptLogprobs: boolean;
  readonly withTokenIds: boolean;
}

export function chatAnswer(head: AnswerHead, answer: WholeAnswer, options: ChatAnswerOptions) {
  return {
    id: head.id,
    object: "chat.completion",
    created: head.created,
    model: head.model,
    choices: answer.choices.map((choice, index) => chatChoice(choice, index, options)),
    usage: completionUsage(answer.usage),
    ...promptFields(answer, options),
  };
}

function chatChoice(choice: WholeChoice, index: number, options: ChatAnswerOptions) {
  const content = choice.logprobs.flatMap(({ tokens, rows }) => chatLogprobs(options.format, tokens, rows));
  return {
    index,
    message: { role: "assistant", content: choice.text, refusal: null },
    logprobs: options.withLogprobs ? { content, refusal: null } : null,
    finish_reason: choice.finish?.reason ?? null,
    stop_reason: choice.finish?.stopReason ?? null,
    ...(options.withTokenIds ? { token_ids: choice.tokens } : {}),
  };
}

function promptFields(
  answer: WholeAnswer,
  options: ChatAnswerOptions,
): { prompt_logprobs?: PromptLogprobEntry[]; prompt_token_ids?: number[] } {
  return {
    ...(options.withPromptLogprobs
      ? { prompt_logprobs: promptLogprobEntries(options.format, options.prompt, answer.promptLogprobs[0]) }
      : {}),
    ...(options.withTokenIds ? { prompt_token_ids: [...options.prompt] } : {}),
  };
}
