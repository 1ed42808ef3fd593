/** Conversations in the shape that chat templates read, made from the messages of a request. */
import { GranaryError } from "../assert";
import type { ChatTemplate } from "./chat-template";
import type { JsonObject, JsonValue } from "./json";
import { isObject } from "./json";
import type { TemplateMessage, TextPart } from "./template-message";

/** A message that a request may not hold; `index` says which. */
export class MessageError extends GranaryError {
  readonly index: number;

  constructor(index: number, message: string) {
    super("message_invalid", message);
    this.index = index;
  }
}

/**
 * Messages as `template` wants them: contents joined or listed, roles it knows, arguments of calls as
 * objects.
 */
export function toTemplateMessages(
  messages: readonly JsonObject[],
  template: Pick<ChatTemplate, "readsContentParts" | "knowsDeveloper">,
): TemplateMessage[] {
  return messages.map((message, index) => {
    const { role, content, tool_calls: toolCalls, ...rest } = message;
    if (typeof role !== "string" || role === "") throw new MessageError(index, "a message needs a role");
    const parts = readContent(content, index);
    return {
      ...rest,
      role: role === "developer" && !template.knowsDeveloper ? "system" : role,
      content:
        typeof parts === "string" || template.readsContentParts
          ? parts
          : parts.map((part) => part.text).join("\n"),
      ...(Array.isArray(toolCalls) ? { tool_calls: toolCalls.map(withParsedArguments) } : {}),
    };
  });
}

function readContent(content: JsonValue | undefined, index: number): string | TextPart[] {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) {
    throw new MessageError(index, "the content of a message is a string or a list of parts");
  }
  return content.map((part): TextPart => {
    if (!isObject(part)) throw new MessageError(index, "a content part is an object");
    const isText = part.type === "text" || part.type === "input_text" || part.type === "output_text";
    if (isText && typeof part.text === "string") return { type: "text", text: part.text };
    if (part.type === "refusal" && typeof part.refusal === "string")
      return { type: "text", text: part.refusal };
    throw new MessageError(index, `content of type ${String(part.type)} is not supported by this model`);
  });
}

/** Templates print the arguments of an earlier call as an object; the API carries them as JSON text. */
function withParsedArguments(call: JsonValue): JsonValue {
  if (!isObject(call) || !isObject(call.function)) return call;
  const text = call.function.arguments;
  if (typeof text !== "string") return call;
  try {
    const parsed = JSON.parse(text) as JsonValue;
    return isObject(parsed) ? { ...call, function: { ...call.function, arguments: parsed } } : call;
  } catch {
    return call;
  }
}
