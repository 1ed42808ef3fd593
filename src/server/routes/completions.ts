/** POST /v1/completions. */
import { Elysia } from "elysia";
import { maxInt32 } from "../../limits";
import { decodeTokens } from "../../tokenizer/detokenizer";
import { answerHead } from "../answers/answer-head";
import { completionAnswer } from "../answers/completion-answer";
import { CompletionStream } from "../answers/completion-stream";
import { runStream } from "../answers/run-stream";
import { runWhole } from "../answers/run-whole";
import { readStreamUsage } from "../answers/stream-usage";
import type { ServerContext } from "../dependencies";
import type { GenerationRequest } from "../generation/generation";
import { checkAdmission } from "../http/admission";
import { invalidParam, unsupportedParam } from "../http/api-error";
import { holdOpen } from "../http/hold-open";
import { jsonBody } from "../http/json-body";
import { checkLogprobCount } from "../parameters/logprob-parameters";
import { checkModelName } from "../parameters/model-name";
import { fitMaxTokens } from "../parameters/prompt-length";
import { optionalInRange } from "../parameters/range";
import { refuseUnsupported } from "../parameters/unsupported";
import { type CompletionBody, completionBody } from "../schema/completion";
import {
  checkNumChoices,
  completeRequest,
  type GenerationSettings,
  readGenerationSettings,
} from "./generation-request";
import { type GivenPrompt, listPrompts, tokenizePrompts } from "./text-prompts";

/** What OpenAI generates where the request names no number. */
const defaultMaxTokens = 16;

export function completions(context: ServerContext) {
  return new Elysia({ name: "granary/completions" }).post(
    "/v1/completions",
    ({ body, request, server }) =>
      holdOpen(context, server, request, (release) => answer(context, body, request.signal, release)),
    { ...jsonBody(completionBody), detail: { summary: "Continue a text", tags: ["Generation"] } },
  );
}

async function answer(
  context: ServerContext,
  body: CompletionBody,
  signal: AbortSignal,
  release: () => void,
) {
  const givenPrompts = listPrompts(body.prompt);
  const generation = await readRequest(context, body, givenPrompts);
  const head = answerHead(context, "cmpl-");
  const options = {
    format: {
      vocabulary: context.tokenizer.vocabulary,
      tokensAsIds: body.return_tokens_as_token_ids ?? false,
    },
    prompts: generation.prompts,
    echoTexts: body.echo === true ? givenPrompts.map((prompt) => echoText(context, prompt)) : undefined,
    choicesPerPrompt: generation.numChoices,
    withLogprobs: generation.logprobs !== undefined,
    withPromptLogprobs: (body.prompt_logprobs ?? null) !== null,
    withTokenIds: body.return_token_ids ?? false,
  };
  if (body.stream === true) {
    const format = new CompletionStream(head, { ...options, usage: readStreamUsage(body) });
    return runStream(context, generation, format, signal, release);
  }
  return completionAnswer(head, await runWhole(context, generation, signal), options);
}

async function readRequest(
  context: ServerContext,
  body: CompletionBody,
  givenPrompts: readonly GivenPrompt[],
): Promise<GenerationRequest> {
  checkModelName(context.model, body.model);
  checkAdmission(context.engine);
  refuseUnsupported(body);
  readStreamUsage(body);
  if ((body.suffix ?? "") !== "") throw unsupportedParam("suffix", "suffix is not supported by this server.");
  const { maxModelLen } = context.engine.limits;
  const maxTokens = optionalInRange("max_tokens", body.max_tokens, 0, maxInt32);
  const settings = readSettings(context, body, maxTokens ?? maxModelLen);
  checkNumChoices(givenPrompts.length, settings.numChoices);
  const prompts = await tokenizePrompts(context, givenPrompts, body.add_special_tokens ?? true);
  const maxTokensOfEach = prompts.map((prompt) =>
    fitMaxTokens({
      promptLength: prompt.length,
      maxModelLen,
      maxTokens,
      defaultMaxTokens: Math.max(defaultMaxTokens, settings.choice.minTokens),
      promptParam: "prompt",
      maxTokensParam: "max_tokens",
    }),
  );
  return completeRequest(context, settings, prompts, maxTokensOfEach, body.stream === true);
}

/**
 * An echoed prompt shows its own log-probabilities, so they are computed even if only `logprobs` asks for
 * them.
 */
function readSettings(context: ServerContext, body: CompletionBody, maxTokens: number): GenerationSettings {
  const { vocabSize } = context.engine.limits;
  const logprobs = checkLogprobCount("logprobs", body.logprobs, context.options.maxLogprobs, vocabSize);
  const settings = readGenerationSettings(context, body, maxTokens, logprobs);
  if ((body.best_of ?? settings.numChoices) !== settings.numChoices) {
    throw invalidParam("best_of", "best_of must equal n: this server returns every choice it makes.");
  }
  if (body.echo !== true || logprobs === undefined) return settings;
  return { ...settings, promptLogprobs: widerCount(settings.promptLogprobs, logprobs) };
}

/** -1 stands for all. */
function widerCount(a: number | undefined, b: number): number {
  if (a === undefined) return b;
  return a === -1 || b === -1 ? -1 : Math.max(a, b);
}

function echoText(context: ServerContext, prompt: GivenPrompt): string {
  if (typeof prompt === "string") return prompt;
  return decodeTokens(context.tokenizer.vocabulary, prompt, { skipSpecialTokens: true, atTextStart: true });
}
