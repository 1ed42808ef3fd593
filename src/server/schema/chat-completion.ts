/** Body of POST /v1/chat/completions. */
import { Type } from "@sinclair/typebox";
import { generationFields, jsonObject, maybe, open } from "./common";

export const chatMessage = Type.Object({ role: Type.String() }, open);

export const chatTemplateFields = {
  messages: Type.Array(chatMessage),
  tools: maybe(Type.Array(jsonObject)),
  add_generation_prompt: maybe(Type.Boolean()),
  continue_final_message: maybe(Type.Boolean()),
  add_special_tokens: maybe(Type.Boolean()),
  chat_template_kwargs: maybe(jsonObject),
};

export const chatCompletionBody = Type.Object(
  {
    ...generationFields,
    ...chatTemplateFields,
    max_tokens: maybe(Type.Integer()),
    max_completion_tokens: maybe(Type.Integer()),
    logprobs: maybe(Type.Boolean()),
    top_logprobs: maybe(Type.Integer()),
    tool_choice: maybe(Type.Union([Type.String(), jsonObject])),
    parallel_tool_calls: maybe(Type.Boolean()),
    response_format: maybe(Type.Object({ type: Type.String() }, open)),
    reasoning_effort: maybe(Type.String()),
  },
  { ...open, description: "OpenAI's chat completion request with vLLM's extensions." },
);

export type ChatCompletionBody = typeof chatCompletionBody.static;
