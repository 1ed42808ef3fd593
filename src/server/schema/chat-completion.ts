/** Body of POST /v1/chat/completions. */
import { t } from "elysia";
import { generationFields, jsonObject, maybe, open } from "./common";

export const chatMessage = t.Object({ role: t.String() }, open);

export const chatTemplateFields = {
  messages: t.Array(chatMessage),
  tools: maybe(t.Array(jsonObject)),
  add_generation_prompt: maybe(t.Boolean()),
  continue_final_message: maybe(t.Boolean()),
  add_special_tokens: maybe(t.Boolean()),
  chat_template_kwargs: maybe(jsonObject),
};

export const chatCompletionBody = t.Object(
  {
    ...generationFields,
    ...chatTemplateFields,
    max_tokens: maybe(t.Integer()),
    max_completion_tokens: maybe(t.Integer()),
    logprobs: maybe(t.Boolean()),
    top_logprobs: maybe(t.Integer()),
    tool_choice: maybe(t.Union([t.String(), jsonObject])),
    parallel_tool_calls: maybe(t.Boolean()),
    response_format: maybe(t.Object({ type: t.String() }, open)),
    reasoning_effort: maybe(t.String()),
  },
  { ...open, description: "OpenAI's chat completion request with vLLM's extensions." },
);

export type ChatCompletionBody = typeof chatCompletionBody.static;
