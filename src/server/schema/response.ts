/** Body of POST /v1/responses, and of the response.create event on its WebSocket. */
import { Type } from "@sinclair/typebox";
import { jsonObject, maybe, open, samplingFields, stopFields } from "./common";

export const responseBody = Type.Object(
  {
    model: maybe(Type.String()),
    input: maybe(Type.Union([Type.String(), Type.Array(jsonObject)])),
    instructions: maybe(Type.String()),
    previous_response_id: maybe(Type.String()),
    /** On the WebSocket: false computes the prompt and generates nothing. */
    generate: maybe(Type.Boolean()),
    max_output_tokens: maybe(Type.Integer()),
    top_logprobs: maybe(Type.Integer()),
    include: maybe(Type.Array(Type.String())),
    tools: maybe(Type.Array(jsonObject)),
    tool_choice: maybe(Type.Union([Type.String(), jsonObject])),
    parallel_tool_calls: maybe(Type.Boolean()),
    text: maybe(jsonObject),
    reasoning: maybe(jsonObject),
    metadata: maybe(jsonObject),
    store: maybe(Type.Boolean()),
    stream: maybe(Type.Boolean()),
    background: maybe(Type.Boolean()),
    truncation: maybe(Type.String()),
    user: maybe(Type.String()),
    cache_salt: maybe(Type.String()),
    chat_template_kwargs: maybe(jsonObject),
    ...samplingFields,
    ...stopFields,
  },
  { ...open, description: "OpenAI's response request with vLLM's sampling extensions." },
);

export type ResponseBody = typeof responseBody.static;
