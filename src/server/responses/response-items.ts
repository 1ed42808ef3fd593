/** Input items and tools of the Responses API as the messages and tools of a conversation. */
import type { JsonObject, JsonValue } from "../../tokenizer/json";
import { isObject } from "../../tokenizer/json";
import { invalidParam, unsupportedParam } from "../http/api-error";

/** The input of a request as messages; a bare text is what the user says. */
export function inputMessages(input: string | readonly JsonObject[] | null | undefined): JsonObject[] {
  if (input === undefined || input === null) return [];
  if (typeof input === "string") return [{ role: "user", content: input }];
  return input.flatMap((item, index) => itemMessages(item, `input[${index}]`));
}

function itemMessages(item: JsonObject, param: string): JsonObject[] {
  switch (item.type ?? "message") {
    case "message":
      if (typeof item.role !== "string") throw invalidParam(`${param}.role`, "A message needs a role.");
      return [{ role: item.role, content: messageContent(item.content, param) }];
    case "function_call":
      return [
        {
          role: "assistant",
          content: "",
          tool_calls: [
            {
              id: String(item.call_id ?? ""),
              type: "function",
              function: { name: String(item.name ?? ""), arguments: String(item.arguments ?? "") },
            },
          ],
        },
      ];
    case "function_call_output":
      return [
        {
          role: "tool",
          tool_call_id: String(item.call_id ?? ""),
          content: messageContent(item.output, param),
        },
      ];
    case "reasoning":
      return [];
    default:
      throw unsupportedParam(`${param}.type`, `Items of type '${String(item.type)}' are not supported.`);
  }
}

function messageContent(content: JsonValue | undefined, param: string): JsonValue {
  if (typeof content === "string" || Array.isArray(content)) return content;
  throw invalidParam(`${param}.content`, "The content of an item is a text or a list of parts.");
}

/** Functions in the form that chat templates know. */
export function functionTools(tools: readonly JsonObject[] | null | undefined): JsonObject[] {
  return (tools ?? []).map((tool, index) => {
    if (tool.type !== "function" || typeof tool.name !== "string") {
      throw unsupportedParam(`tools[${index}]`, "Only tools of type 'function' with a name are supported.");
    }
    const { type, name, description, parameters } = tool;
    return {
      type,
      function: {
        name,
        ...(typeof description === "string" ? { description } : {}),
        ...(isObject(parameters) ? { parameters } : {}),
      },
    };
  });
}
