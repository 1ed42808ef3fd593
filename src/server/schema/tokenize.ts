/** Bodies of POST /tokenize and POST /detokenize. */
import { t } from "elysia";
import { chatTemplateFields } from "./chat-completion";
import { maybe, open } from "./common";

export const tokenizeBody = t.Object(
  {
    model: maybe(t.String()),
    prompt: maybe(t.String()),
    ...chatTemplateFields,
    messages: maybe(chatTemplateFields.messages),
    return_token_strs: maybe(t.Boolean()),
  },
  open,
);

export type TokenizeBody = typeof tokenizeBody.static;

export const detokenizeBody = t.Object({ model: maybe(t.String()), tokens: t.Array(t.Integer()) }, open);

export type DetokenizeBody = typeof detokenizeBody.static;
