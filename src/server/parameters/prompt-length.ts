/** The contract of prompt and answer length with the model's context. */
import { GranaryError } from "../../assert";
import { ApiError, invalidParam } from "../http/api-error";

export interface LengthRequest {
  readonly promptLength: number;
  readonly maxModelLen: number;
  /** As given by the client, or undefined. */
  readonly maxTokens: number | undefined;
  /** Taken when the client names no number; cut to what fits. */
  readonly defaultMaxTokens: number;
  /** Field that holds the prompt, and the one that holds the limit. */
  readonly promptParam: string;
  readonly maxTokensParam: string;
}

/** Tokens that may be generated behind this prompt, or the error that it does not fit. */
export function fitMaxTokens(request: LengthRequest): number {
  const { promptLength, maxModelLen, maxTokens } = request;
  if (promptLength === 0) {
    throw invalidParam(request.promptParam, "The prompt is empty: it has no tokens.");
  }
  const isPromptOnly = maxTokens === 0;
  if (promptLength > maxModelLen || (promptLength === maxModelLen && !isPromptOnly)) {
    throw contextLengthExceeded(
      `This model's maximum context length is ${maxModelLen} tokens, ` +
        `but the prompt alone has ${promptLength}.`,
      request.promptParam,
    );
  }
  const room = maxModelLen - promptLength;
  if (maxTokens === undefined) return Math.min(request.defaultMaxTokens, room);
  if (maxTokens > room) {
    throw contextLengthExceeded(
      `This model's maximum context length is ${maxModelLen} tokens, but ${promptLength + maxTokens} were ` +
        `requested (${promptLength} in the prompt, ${maxTokens} to generate).`,
      request.maxTokensParam,
    );
  }
  return maxTokens;
}

/** Ids of a prompt, or the error that its tokenizer gave up because the prompt is far too long. */
export async function encodedWithin(promptParam: string, ids: Promise<Int32Array>): Promise<Int32Array> {
  try {
    return await ids;
  } catch (error) {
    const isTooLong = error instanceof GranaryError && error.code === "context_length_exceeded";
    throw isTooLong ? contextLengthExceeded(error.message, promptParam) : error;
  }
}

function contextLengthExceeded(message: string, param: string): ApiError {
  return new ApiError(400, message, { param, code: "context_length_exceeded" });
}
