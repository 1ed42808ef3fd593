/** Body of POST /v1/completions. */
import { t } from "elysia";
import { generationFields, maybe, open } from "./common";

export const completionBody = t.Object(
  {
    ...generationFields,
    prompt: t.Union([t.String(), t.Array(t.String()), t.Array(t.Integer()), t.Array(t.Array(t.Integer()))]),
    max_tokens: maybe(t.Integer()),
    logprobs: maybe(t.Integer()),
    echo: maybe(t.Boolean()),
    suffix: maybe(t.String()),
    best_of: maybe(t.Integer()),
    add_special_tokens: maybe(t.Boolean()),
    response_format: maybe(t.Object({ type: t.String() }, open)),
  },
  { ...open, description: "OpenAI's completion request with vLLM's extensions." },
);

export type CompletionBody = typeof completionBody.static;
