/** What a server's HTTP answers mean to a client that measures: models, chunks of a completion, refusals. */
import { GranaryError, messageOf } from "../../assert";

export interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null;
}

export interface CompletionChunk {
  readonly choices: readonly unknown[];
  readonly usage?: Usage | null;
}

export interface ServedModel {
  readonly id: string;
  readonly max_model_len?: number;
}

/** As much of a foreign text as a reason quotes. */
const maxQuotedLength = 200;

function quote(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > maxQuotedLength ? `${line.slice(0, maxQuotedLength)}...` : line;
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** The server's own words for what went wrong, wherever it puts them. */
function errorMessage(text: string): string {
  const body = parseObject(text);
  const error = (body?.error ?? body) as { readonly message?: unknown } | string | undefined;
  const message = typeof error === "string" ? error : error?.message;
  return quote(typeof message === "string" ? message : text);
}

/** `fetch`, except that whatever keeps it from a good answer names the URL. Throws GranaryError. */
export async function fetchAnswer(url: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, init);
  } catch (error) {
    throw new GranaryError("no_answer", `${url}: ${messageOf(error)}`);
  }
  if (response.ok) return response;
  const message = errorMessage(await response.text().catch(messageOf));
  throw new GranaryError("bad_status", `${url} answered ${response.status}: ${message}`);
}

/** Models of a listing that came from `url`. Throws GranaryError when it is no such listing or empty. */
export function parseModels(text: string, url: string): readonly ServedModel[] {
  const models = parseObject(text)?.data;
  const isListing = Array.isArray(models) && models.every((model) => typeof model?.id === "string");
  if (!isListing) throw new GranaryError("bad_answer", `${url} lists no models: ${quote(text)}`);
  if (models.length === 0) throw new GranaryError("bad_answer", `${url} serves no model`);
  return models as ServedModel[];
}

/** A streamed event's data. Throws GranaryError with the server's message, or with what it sent instead. */
export function parseChunk(text: string): CompletionChunk {
  const value = parseObject(text);
  if (value?.error !== undefined && value.error !== null) {
    throw new GranaryError("stream_error", `the stream ended with an error: ${errorMessage(text)}`);
  }
  const usage = value?.usage as Partial<Usage> | null | undefined;
  const hasCounts =
    usage === undefined ||
    usage === null ||
    (typeof usage.prompt_tokens === "number" && typeof usage.completion_tokens === "number");
  if (!Array.isArray(value?.choices) || !hasCounts) {
    throw new GranaryError("bad_answer", `the stream sent something else: ${quote(text)}`);
  }
  return value as unknown as CompletionChunk;
}
