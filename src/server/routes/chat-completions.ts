/** POST /v1/chat/completions. */
import { Elysia } from "elysia";
import { maxInt32 } from "../../limits";
import { answerHead } from "../answers/answer-head";
import { chatAnswer } from "../answers/chat-answer";
import { ChatStream } from "../answers/chat-stream";
import { runStream } from "../answers/run-stream";
import { runWhole } from "../answers/run-whole";
import { readStreamUsage } from "../answers/stream-usage";
import type { ServerContext } from "../dependencies";
import type { GenerationRequest } from "../generation/generation";
import { checkAdmission } from "../http/admission";
import { invalidParam } from "../http/api-error";
import { holdOpen } from "../http/hold-open";
import { jsonBody } from "../http/json-body";
import { checkLogprobCount } from "../parameters/logprob-parameters";
import { checkModelName } from "../parameters/model-name";
import { encodedWithin, fitMaxTokens } from "../parameters/prompt-length";
import { optionalInRange } from "../parameters/range";
import { refuseUnsupported } from "../parameters/unsupported";
import { type ChatCompletionBody, chatCompletionBody } from "../schema/chat-completion";
import { readChatPrompt } from "./chat-prompt";
import { checkNumChoices, completeRequest, readGenerationSettings } from "./generation-request";

export function chatCompletions(context: ServerContext) {
  return new Elysia({ name: "granary/chat-completions" }).post(
    "/v1/chat/completions",
    ({ body, request, server }) =>
      holdOpen(context, server, request, (release) => answer(context, body, request.signal, release)),
    {
      ...jsonBody(chatCompletionBody),
      detail: { summary: "Continue a conversation", tags: ["Generation"] },
    },
  );
}

async function answer(
  context: ServerContext,
  body: ChatCompletionBody,
  signal: AbortSignal,
  release: () => void,
) {
  const generation = await readRequest(context, body);
  const head = answerHead(context, "chatcmpl-");
  const options = {
    format: {
      vocabulary: context.tokenizer.vocabulary,
      tokensAsIds: body.return_tokens_as_token_ids ?? false,
    },
    prompt: generation.prompts[0],
    withLogprobs: generation.logprobs !== undefined,
    withPromptLogprobs: generation.promptLogprobs !== undefined,
    withTokenIds: body.return_token_ids ?? false,
  };
  if (body.stream === true) {
    const format = new ChatStream(head, { ...options, usage: readStreamUsage(body) });
    return runStream(context, generation, format, signal, release);
  }
  return chatAnswer(head, await runWhole(context, generation, signal), options);
}

async function readRequest(context: ServerContext, body: ChatCompletionBody): Promise<GenerationRequest> {
  checkModelName(context.model, body.model);
  checkAdmission(context.engine);
  refuseUnsupported(body);
  readStreamUsage(body);
  const { limits } = context.engine;
  const maxTokensParam =
    (body.max_completion_tokens ?? null) === null ? "max_tokens" : "max_completion_tokens";
  const maxTokens = optionalInRange(maxTokensParam, body[maxTokensParam], 1, maxInt32);
  const settings = readGenerationSettings(
    context,
    body,
    maxTokens ?? limits.maxModelLen,
    readLogprobs(context, body),
  );
  checkNumChoices(1, settings.numChoices);
  const chat = readChatPrompt(body);
  const ids = context.tokenizer.encodeChat(chat, body.add_special_tokens ?? true, limits.maxModelLen);
  const prompt = await encodedWithin("messages", ids);
  const fittingTokens = fitMaxTokens({
    promptLength: prompt.length,
    maxModelLen: limits.maxModelLen,
    maxTokens,
    defaultMaxTokens: limits.maxModelLen,
    promptParam: "messages",
    maxTokensParam,
  });
  return completeRequest(context, settings, [prompt], [fittingTokens], body.stream === true);
}

/** Alternatives a token, or undefined when no log-probabilities are wanted. */
function readLogprobs(context: ServerContext, body: ChatCompletionBody): number | undefined {
  const count = checkLogprobCount(
    "top_logprobs",
    body.top_logprobs,
    context.options.maxLogprobs,
    context.engine.limits.vocabSize,
  );
  if (body.logprobs === true) return count ?? 0;
  if (count !== undefined && count !== 0) {
    throw invalidParam("top_logprobs", "top_logprobs is only allowed when logprobs is true.");
  }
  return undefined;
}
