/**
 * Entry of the Worker that tokenizes long texts, so that the main thread goes on answering. Knows text and
 * ids only.
 */
import { GranaryError } from "../assert";
import { tokensBeyond } from "./length-check";
import type { WorkerReply, WorkerRequest } from "./long-text-encoder";
import { TextEncoding } from "./text-encoder";

declare const self: Worker;

let encoding: TextEncoding | undefined;

self.onmessage = ({ data }: MessageEvent<WorkerRequest>) => {
  if (data.kind === "load") {
    encoding = new TextEncoding(data.tokenizer, data.tokenizerConfig);
    return;
  }
  self.postMessage(answer(data));
};

function answer(request: Exclude<WorkerRequest, { kind: "load" }>): WorkerReply {
  try {
    if (encoding === undefined) throw new Error("the tokenizer is not loaded");
    refuseTooLong(request, encoding);
    const ids =
      request.kind === "text" ? encoding.encodeText(request.text) : encoding.encodePieces(request.pieces);
    return { id: request.id, ids: Int32Array.from(ids) };
  } catch (error) {
    const code = error instanceof GranaryError ? error.code : "text_not_encodable";
    return { id: request.id, error: (error as Error).message, code };
  }
}

function refuseTooLong(request: Exclude<WorkerRequest, { kind: "load" }>, encoder: TextEncoding): void {
  const texts =
    request.kind === "text" ? [request.text] : request.pieces.filter((piece) => typeof piece === "string");
  const beyond = tokensBeyond(texts, request.limit, (text) => encoder.encodeText(text).length);
  if (beyond === undefined) return;
  throw new GranaryError(
    "context_length_exceeded",
    `This model's maximum context length is ${request.limit} tokens, but the prompt has more than ${beyond}.`,
  );
}
