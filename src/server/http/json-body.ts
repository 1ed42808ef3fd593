/** Reads a request body as JSON, within the largest size and the longest time that a body may take. */
import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { bodyDeadlineMs, maxRequestBodyBytes } from "../../limits";
import { ApiError } from "./api-error";
import { bodyCheck } from "./body-check";

type BodyParser = (context: { request: Request }) => Promise<unknown>;

/**
 * What a route with a body says of it. `body` types and describes it; it is checked where it is parsed. The
 * name behind the parser tells the API's description what is read. It stands at the routes because a parser
 * of the whole app would also run for a WebSocket's upgrade and spoil it.
 */
export function jsonBody<Schema extends TSchema>(schema: Schema) {
  const check = bodyCheck(schema);
  const parser: BodyParser = async ({ request }) => check(await readJsonBody(request));
  const parse: [BodyParser, "json"] = [parser, "json"];
  return { body: Type.Unsafe<Static<Schema>>(schema), parse };
}

/** The parsed body, or an ApiError of status 400, 408, 413 or 415. */
export async function readJsonBody(request: Request, deadlineMs = bodyDeadlineMs): Promise<unknown> {
  checkMediaType(request.headers);
  const bytes = await withDeadline(readBytes(request), request, deadlineMs);
  if (bytes.length === 0) throw new ApiError(400, "The request body is empty; a JSON object is expected.");
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ApiError(400, "The request body is not valid UTF-8.");
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(400, "The request body is not valid JSON.", { code: "invalid_json" });
  }
}

/** Refuses, before anything is read, a body whose announced size is too large. */
export function checkContentLength(headers: Headers): void {
  const length = headers.get("content-length");
  if (length !== null && Number(length) > maxRequestBodyBytes) throw bodyTooLarge();
}

function checkMediaType(headers: Headers): void {
  const [mediaType, ...parameters] = (headers.get("content-type") ?? "").toLowerCase().split(";");
  if (mediaType.trim() !== "application/json") {
    throw new ApiError(415, "The Content-Type must be application/json.", { code: "unsupported_media_type" });
  }
  const charset = parameters.map((part) => part.trim()).find((part) => part.startsWith("charset="));
  if (charset !== undefined && !/^charset="?utf-?8"?$/.test(charset)) {
    throw new ApiError(415, "The charset must be utf-8.", { code: "unsupported_media_type" });
  }
  const encoding = headers.get("content-encoding");
  if (encoding !== null && encoding.trim().toLowerCase() !== "identity") {
    throw new ApiError(415, "Encoded bodies are not accepted.", { code: "unsupported_media_type" });
  }
}

/** A body of announced size comes in one piece; one without is counted while it comes. */
async function readBytes(request: Request): Promise<Uint8Array> {
  if (request.headers.has("content-length")) return new Uint8Array(await request.arrayBuffer());
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of request.body ?? []) {
    size += part.length;
    if (size > maxRequestBodyBytes) throw bodyTooLarge();
    parts.push(part);
  }
  return parts.length === 1 ? parts[0] : Buffer.concat(parts, size);
}

/** A sender that trickles never lets the idle timeout come, so the whole body has a deadline too. */
async function withDeadline<T>(reading: Promise<T>, request: Request, deadlineMs: number): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const headers = { Connection: "close" };
    reject(new ApiError(408, "The request body took too long.", { code: "request_timeout", headers }));
  }, deadlineMs);
  try {
    return await Promise.race([reading, promise]);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError(400, "The request body could not be read.", {
      headers: request.signal.aborted ? {} : { Connection: "close" },
    });
  } finally {
    clearTimeout(timer);
  }
}

function bodyTooLarge(): ApiError {
  return new ApiError(413, `The request body is larger than ${maxRequestBodyBytes} bytes.`, {
    code: "request_too_large",
    headers: { Connection: "close" },
  });
}
