/** When a stream reports its usage: in one chunk at the end, in every chunk, or not at all. */
import { invalidParam } from "../http/api-error";

export interface StreamUsage {
  readonly atEnd: boolean;
  readonly inEveryChunk: boolean;
}

export interface StreamFields {
  readonly stream?: boolean | null;
  readonly stream_options?: {
    readonly include_usage?: boolean | null;
    readonly continuous_usage_stats?: boolean | null;
  } | null;
}

export function readStreamUsage(fields: StreamFields): StreamUsage {
  const options = fields.stream_options;
  if (options !== undefined && options !== null && fields.stream !== true) {
    throw invalidParam("stream_options", "stream_options is only allowed when stream is true.");
  }
  const atEnd = options?.include_usage ?? false;
  return { atEnd, inEveryChunk: atEnd && (options?.continuous_usage_stats ?? false) };
}
