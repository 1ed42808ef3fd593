/**
 * Entry of the Worker that tokenizes long texts, so that the main thread goes on answering. Knows text and
 * ids only.
 */
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
    const ids =
      request.kind === "text" ? encoding.encodeText(request.text) : encoding.encodePieces(request.pieces);
    return { id: request.id, ids: Int32Array.from(ids) };
  } catch (error) {
    return { id: request.id, error: (error as Error).message };
  }
}
