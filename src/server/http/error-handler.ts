/** Every failure of a route, whoever noticed it, as an OpenAI error. */
import { GranaryError } from "../../assert";
import { MessageError } from "../../tokenizer/chat-messages";
import type { Log } from "../dependencies";
import { ApiError, invalidParam, unavailable } from "./api-error";

/** Codes of GranaryError that are the client's doing, with the field they speak about. */
const clientMistakes: Readonly<Record<string, string>> = {
  template_error: "messages",
  chat_template_missing: "messages",
  text_not_encodable: "prompt",
};

/** `code` is Elysia's name for the failure; NOT_FOUND is answered by the route table. */
export function toApiError(code: string | number, error: unknown, log: Log): ApiError {
  if (error instanceof ApiError) return error;
  // What a body's reader throws comes wrapped.
  if (error instanceof Error && error.cause instanceof ApiError) return error.cause;
  if (error instanceof MessageError) {
    return invalidParam(`messages[${error.index}]`, `messages[${error.index}]: ${error.message}`);
  }
  if (error instanceof GranaryError) return fromGranaryError(error, log);
  if (code === "PARSE")
    return new ApiError(400, "The request body is not valid JSON.", { code: "invalid_json" });
  if (error instanceof RangeError && /call stack/i.test(error.message)) {
    return new ApiError(400, "The request body nests too deeply.");
  }
  log.error("a request failed", {
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  return new ApiError(500, "The server failed to answer this request.", { code: "internal_error" });
}

function fromGranaryError(error: GranaryError, log: Log): ApiError {
  const param = clientMistakes[error.code];
  if (param !== undefined) return invalidParam(param, error.message, error.code);
  if (error.code === "tokenizer_overloaded" || error.code === "engine_not_ready") {
    return unavailable(error.message, 1);
  }
  log.error("a request failed", { code: error.code, error: error.message });
  return new ApiError(500, error.message, { code: error.code });
}
