/**
 * Fields that would change the answer and are not supported: refused, where a field without effect would be
 * ignored.
 */
import { unsupportedParam } from "../http/api-error";

type Body = Readonly<Record<string, unknown>>;

/** Fields that must be absent, null, false or empty. */
const refusedFields = [
  "audio",
  "function_call",
  "functions",
  "prediction",
  "web_search_options",
  "structured_outputs",
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "guided_decoding_backend",
  "use_beam_search",
  "logits_processors",
  "prompt_embeds",
  "continue_final_message",
  "truncate_prompt_tokens",
  "bad_words",
  "allowed_token_ids",
  "chat_template",
] as const;

export function refuseUnsupported(body: Body): void {
  for (const field of refusedFields) {
    if (isSet(body[field]) && body[field] !== "none") {
      throw unsupportedParam(field, `${field} is not supported by this server.`);
    }
  }
  refuseModalities(body.modalities);
  refuseToolChoice(body);
  refuseFormat(body.response_format);
}

function isSet(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === "") return false;
  return !(Array.isArray(value) && value.length === 0);
}

function refuseModalities(modalities: unknown): void {
  if (!Array.isArray(modalities) || modalities.every((modality) => modality === "text")) return;
  throw unsupportedParam("modalities", "Only the modality 'text' is supported.");
}

/** Tools are shown to the model; a call cannot be forced. */
function refuseToolChoice(body: Body): void {
  const choice = body.tool_choice;
  if (choice === undefined || choice === null || choice === "auto" || choice === "none") return;
  throw unsupportedParam("tool_choice", "tool_choice must be 'auto' or 'none': a call cannot be forced.");
}

function refuseFormat(format: unknown): void {
  if (format === undefined || format === null) return;
  if ((format as { type?: unknown }).type === "text") return;
  throw unsupportedParam("response_format", "Only the response format 'text' is supported.");
}
