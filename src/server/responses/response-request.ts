/** From the body of a Responses request to a generation. */
import { maxInt32 } from "../../limits";
import type { JsonObject } from "../../tokenizer/json";
import { isObject } from "../../tokenizer/json";
import type { ServerContext } from "../dependencies";
import type { GenerationRequest } from "../generation/generation";
import { checkAdmission } from "../http/admission";
import { invalidParam, unsupportedParam } from "../http/api-error";
import { checkLogprobCount } from "../parameters/logprob-parameters";
import { checkModelName } from "../parameters/model-name";
import { encodedWithin, fitMaxTokens } from "../parameters/prompt-length";
import { optionalInRange } from "../parameters/range";
import { refuseUnsupported } from "../parameters/unsupported";
import { readChatPrompt } from "../routes/chat-prompt";
import { completeRequest, readGenerationSettings } from "../routes/generation-request";
import type { ResponseBody } from "../schema/response";
import type { ResponseChain } from "./response-chain";
import { functionTools, inputMessages } from "./response-items";

/** Asking for it in `include` is how this API turns log-probabilities on. */
const logprobInclude = "message.output_text.logprobs";

export interface ResponsePlan {
  readonly generation: GenerationRequest;
  /** The conversation so far without instructions, which hold for one response only. */
  readonly earlier: readonly JsonObject[];
  readonly added: readonly JsonObject[];
  readonly withLogprobs: boolean;
}

/** `chain` is absent where nothing is remembered between requests. */
export async function planResponse(
  context: ServerContext,
  body: ResponseBody,
  chain: ResponseChain | undefined,
): Promise<ResponsePlan> {
  checkModelName(context.model, body.model);
  checkAdmission(context.engine);
  refuseUnsupported(body);
  refuseForResponses(body);
  const { maxModelLen, vocabSize } = context.engine.limits;
  const isWarmUp = body.generate === false;
  const maxTokens = isWarmUp ? 0 : optionalInRange("max_output_tokens", body.max_output_tokens, 1, maxInt32);
  const withLogprobs = body.include?.includes(logprobInclude) ?? false;
  const count = checkLogprobCount("top_logprobs", body.top_logprobs, context.options.maxLogprobs, vocabSize);
  const settings = readGenerationSettings(
    context,
    { ...body, stream: false },
    maxTokens ?? maxModelLen,
    withLogprobs ? (count ?? 0) : undefined,
  );
  const earlier = earlierMessages(body.previous_response_id, chain);
  const added = inputMessages(body.input as string | readonly JsonObject[] | null | undefined);
  const conversation = chatPrompt(body, [...earlier, ...added], !isWarmUp);
  const ids = context.tokenizer.encodeChat(conversation, true, maxModelLen);
  const prompt = await encodedWithin("input", ids);
  const fittingTokens = fitMaxTokens({
    promptLength: prompt.length,
    maxModelLen,
    maxTokens,
    defaultMaxTokens: maxModelLen,
    promptParam: "input",
    maxTokensParam: "max_output_tokens",
  });
  return {
    generation: completeRequest(context, settings, [prompt], [fittingTokens], false),
    earlier,
    added,
    withLogprobs,
  };
}

function chatPrompt(body: ResponseBody, messages: readonly JsonObject[], addGenerationPrompt: boolean) {
  const { instructions, reasoning } = body;
  const system = (instructions ?? "") === "" ? [] : [{ role: "system", content: instructions as string }];
  if (messages.length + system.length === 0) throw invalidParam("input", "The input is empty.");
  const effort = isObject(reasoning) && typeof reasoning.effort === "string" ? reasoning.effort : null;
  return readChatPrompt({
    messages: [...system, ...messages],
    tools: functionTools(body.tools as readonly JsonObject[] | null | undefined),
    tool_choice: body.tool_choice,
    add_generation_prompt: addGenerationPrompt,
    chat_template_kwargs: body.chat_template_kwargs ?? null,
    reasoning_effort: effort,
  });
}

function earlierMessages(
  previousId: string | null | undefined,
  chain: ResponseChain | undefined,
): readonly JsonObject[] {
  if (previousId === undefined || previousId === null) return [];
  const messages = chain?.messagesOf(previousId);
  if (messages !== undefined) return messages;
  const hint = chain === undefined ? " Responses are only remembered by a WebSocket connection." : "";
  throw invalidParam(
    "previous_response_id",
    `Previous response with id '${previousId.slice(0, 100)}' not found.${hint}`,
    "previous_response_not_found",
  );
}

/** Fields that must be absent, null or false; completions take the last one, a response cannot show it. */
const refusedFields = [
  "conversation",
  "prompt",
  "background",
  "context_management",
  "moderation",
  "prompt_logprobs",
] as const;

function refuseForResponses(body: ResponseBody): void {
  const fields = body as Record<string, unknown>;
  for (const field of refusedFields) {
    const value = fields[field];
    if (value !== undefined && value !== null && value !== false) {
      throw unsupportedParam(field, `${field} is not supported by this server.`);
    }
  }
  if ((fields.n ?? 1) !== 1) throw unsupportedParam("n", "A response has one choice: n must be 1.");
  const format = isObject(body.text) ? body.text.format : undefined;
  if (isObject(format) && format.type !== "text") {
    throw unsupportedParam("text.format", "Only the text format 'text' is supported.");
  }
}
