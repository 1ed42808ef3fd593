/** Body of POST /v1/completions. */
import { Type } from "@sinclair/typebox";
import { generationFields, maybe, open } from "./common";

export const completionBody = Type.Object(
  {
    ...generationFields,
    prompt: Type.Union([
      Type.String(),
      Type.Array(Type.String()),
      Type.Array(Type.Integer()),
      Type.Array(Type.Array(Type.Integer())),
    ]),
    max_tokens: maybe(Type.Integer()),
    logprobs: maybe(Type.Integer()),
    echo: maybe(Type.Boolean()),
    suffix: maybe(Type.String()),
    best_of: maybe(Type.Integer()),
    add_special_tokens: maybe(Type.Boolean()),
    response_format: maybe(Type.Object({ type: Type.String() }, open)),
  },
  { ...open, description: "OpenAI's completion request with vLLM's extensions." },
);

export type CompletionBody = typeof completionBody.static;
