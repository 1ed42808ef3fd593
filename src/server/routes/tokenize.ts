/** POST /tokenize and POST /detokenize. */
import { Elysia } from "elysia";
import { decodeTokens } from "../../tokenizer/detokenizer";
import type { ServerContext } from "../dependencies";
import { checkAdmission } from "../http/admission";
import { invalidParam } from "../http/api-error";
import { jsonBody } from "../http/json-body";
import { checkModelName } from "../parameters/model-name";
import { refuseUnsupported } from "../parameters/unsupported";
import { detokenizeBody, type TokenizeBody, tokenizeBody } from "../schema/tokenize";
import { readChatPrompt } from "./chat-prompt";
import { checkTokenIds } from "./text-prompts";

export function tokenize(context: ServerContext) {
  const { tokenizer, model, engine } = context;
  return new Elysia({ name: "granary/tokenize" })
    .post(
      "/tokenize",
      async ({ body }) => {
        checkModelName(model, body.model);
        refuseUnsupported(body);
        checkAdmission(engine);
        const tokens = await encode(context, body);
        const withNames = body.return_token_strs ?? false;
        return {
          count: tokens.length,
          max_model_len: engine.limits.maxModelLen,
          tokens: [...tokens],
          token_strs: withNames ? Array.from(tokens, (id) => tokenizer.vocabulary.entry(id).text) : null,
        };
      },
      {
        ...jsonBody(tokenizeBody),
        detail: { summary: "The tokens of a text or a conversation", tags: ["Tokens"] },
      },
    )
    .post(
      "/detokenize",
      ({ body }) => {
        checkModelName(model, body.model);
        checkAdmission(engine);
        const ids = checkTokenIds(body.tokens, engine.limits.vocabSize, "tokens");
        const options = { skipSpecialTokens: false, atTextStart: true };
        return { prompt: decodeTokens(tokenizer.vocabulary, ids, options) };
      },
      { ...jsonBody(detokenizeBody), detail: { summary: "The text of tokens", tags: ["Tokens"] } },
    );
}

/** The ids that a generation of the same text or conversation would start from. */
function encode(context: ServerContext, body: TokenizeBody): Promise<Int32Array> {
  const { messages } = body;
  const addSpecialTokens = body.add_special_tokens ?? true;
  if (typeof body.prompt === "string" && !Array.isArray(messages)) {
    return context.tokenizer.encodePrompt(body.prompt, addSpecialTokens);
  }
  if (Array.isArray(messages) && typeof body.prompt !== "string") {
    return context.tokenizer.encodeChat(readChatPrompt({ ...body, messages }), addSpecialTokens);
  }
  throw invalidParam("prompt", "Either prompt or messages must be given, and not both.");
}
