/** The response object of the Responses API, as it is at one moment. */
import type { ChatTokenLogprobs } from "../generation/logprob-format";
import { responseUsage, type Usage } from "../generation/usage";
import type { ApiError } from "../http/api-error";
import type { ResponseBody } from "../schema/response";

export type ResponseStatus = "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";

/** What does not change while a response is made. */
export interface ResponseIdentity {
  readonly id: string;
  readonly messageId: string;
  /** Unix seconds. */
  readonly createdAt: number;
  readonly model: string;
  readonly body: ResponseBody;
  readonly withLogprobs: boolean;
}

export interface ResponseProgress {
  readonly status: ResponseStatus;
  readonly text: string;
  readonly logprobs: readonly ChatTokenLogprobs[];
  /** False for a warm-up and before the first token. */
  readonly hasMessage: boolean;
  readonly usage?: Usage;
  readonly error?: ApiError;
  readonly completedAt?: number;
}

export function responseObject(identity: ResponseIdentity, progress: ResponseProgress) {
  const { body } = identity;
  return {
    id: identity.id,
    object: "response",
    created_at: identity.createdAt,
    completed_at: progress.completedAt ?? null,
    status: progress.status,
    error: progress.error === undefined ? null : { code: "server_error", message: progress.error.message },
    incomplete_details: progress.status === "incomplete" ? { reason: "max_output_tokens" } : null,
    model: identity.model,
    output: progress.hasMessage ? [messageItem(identity, progress)] : [],
    usage: progress.usage === undefined ? null : responseUsage(progress.usage),
    ...echoedFields(body),
  };
}

/** What the request set, or the default that held. */
function echoedFields(body: ResponseBody) {
  return {
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    metadata: body.metadata ?? {},
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: body.previous_response_id ?? null,
    reasoning: body.reasoning ?? null,
    store: false,
    temperature: body.temperature ?? 1,
    text: body.text ?? { format: { type: "text" } },
    tool_choice: body.tool_choice ?? "auto",
    tools: body.tools ?? [],
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: "disabled",
    ...(body.user === undefined || body.user === null ? {} : { user: body.user }),
  };
}

export function messageItem(identity: ResponseIdentity, progress: ResponseProgress) {
  const isOpen = progress.status === "in_progress";
  const hasPart = !isOpen || progress.text !== "";
  return {
    id: identity.messageId,
    type: "message",
    role: "assistant",
    status: isOpen ? "in_progress" : progress.status === "completed" ? "completed" : "incomplete",
    content: hasPart ? [textPart(progress.text, progress.logprobs)] : [],
  };
}

export function textPart(text: string, logprobs: readonly ChatTokenLogprobs[]) {
  return { type: "output_text", text, annotations: [], logprobs };
}
