/** A conversation of a request as the tokenizer takes it. */
import { maxMessages, maxTools } from "../../limits";
import type { JsonObject } from "../../tokenizer/json";
import type { ChatPrompt } from "../../tokenizer/model-tokenizer";
import { invalidParam } from "../http/api-error";

export interface ChatFields {
  readonly messages: readonly object[];
  readonly tools?: readonly object[] | null;
  readonly tool_choice?: unknown;
  readonly add_generation_prompt?: boolean | null;
  readonly chat_template_kwargs?: object | null;
  readonly reasoning_effort?: string | null;
}

export function readChatPrompt(fields: ChatFields): ChatPrompt {
  const { messages, tools } = fields;
  if (messages.length === 0) throw invalidParam("messages", "messages may not be empty.");
  if (messages.length > maxMessages) {
    throw invalidParam("messages", `A conversation may have at most ${maxMessages} messages.`);
  }
  if ((tools?.length ?? 0) > maxTools) throw invalidParam("tools", `There may be at most ${maxTools} tools.`);
  const showsTools =
    tools !== undefined && tools !== null && tools.length > 0 && fields.tool_choice !== "none";
  return {
    messages: messages as readonly JsonObject[],
    ...(showsTools ? { tools: tools as readonly JsonObject[] } : {}),
    addGenerationPrompt: fields.add_generation_prompt ?? true,
    templateVariables: {
      ...(typeof fields.reasoning_effort === "string" ? { reasoning_effort: fields.reasoning_effort } : {}),
      ...(fields.chat_template_kwargs as JsonObject | null | undefined),
    },
  };
}
