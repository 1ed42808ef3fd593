/** Bodies of POST /tokenize and POST /detokenize. */
import { Type } from "@sinclair/typebox";
import { chatTemplateFields } from "./chat-completion";
import { maybe, open } from "./common";

export const tokenizeBody = Type.Object(
  {
    model: maybe(Type.String()),
    prompt: maybe(Type.String()),
    ...chatTemplateFields,
    messages: maybe(chatTemplateFields.messages),
    return_token_strs: maybe(Type.Boolean()),
  },
  open,
);

export type TokenizeBody = typeof tokenizeBody.static;

export const detokenizeBody = Type.Object(
  { model: maybe(Type.String()), tokens: Type.Array(Type.Integer()) },
  open,
);

export type DetokenizeBody = typeof detokenizeBody.static;
