/**
 * The body of one server-sent-events answer. The answer begins with the first thing written, so a request
 * that fails before that still gets a proper status; a client that does not read is cut off once its queue
 * is full.
 */
import { maxStreamBacklogBytes } from "../../limits";
import { ApiError } from "../http/api-error";
import type { Heartbeat } from "./heartbeat";

const utf8 = new TextEncoder();
const keepAliveComment = utf8.encode(": keep-alive\n\n");
const backlogError = new ApiError(408, "The client does not read its stream.", { code: "client_too_slow" });
const backlogEvent = utf8.encode(`data: ${JSON.stringify(backlogError.body)}\n\n`);
const doneEvent = "data: [DONE]\n\n";

const headers = {
  "Content-Type": "text/event-stream; charset=utf-8",
  "Cache-Control": "no-cache",
  "X-Accel-Buffering": "no",
};

export interface SseStreamOptions {
  readonly heartbeat: Heartbeat;
  /** The stream is over: ended, failed, cut off or left by its client. Called once. */
  readonly onClose: () => void;
}

export class SseStream {
  /** Settles with the first write, or rejects with the error that came before it. */
  readonly response: Promise<Response>;
  readonly #options: SseStreamOptions;
  readonly #resolve: (response: Response) => void;
  readonly #reject: (error: ApiError) => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #isClosed = false;

  constructor(options: SseStreamOptions) {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    this.response = promise;
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    options.heartbeat.add(this);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sends whole events, each ending in an empty line. */
  write(events: string): void {
    if (this.#isClosed) return;
    this.#options.heartbeat.touch(this);
    this.#send(utf8.encode(events));
  }

  /** Ends the stream; `last` goes out before it. */
  end(last = doneEvent): void {
    if (this.#isClosed) return;
    if (last !== "") this.#send(utf8.encode(last));
    if (this.#isClosed) return;
    this.#open().close();
    this.#close();
  }

  /** An error as status if nothing was sent yet, else as the stream's last event. */
  fail(error: ApiError, lastEvent = `data: ${JSON.stringify(error.body)}\n\n`): void {
    if (this.#isClosed) return;
    if (this.#controller !== undefined) {
      this.end(lastEvent);
      return;
    }
    this.#close();
    this.#reject(error);
  }

  /** The client is gone: nothing more is sent. */
  cancel(): void {
    if (this.#isClosed) return;
    if (this.#controller === undefined) this.#resolve(new Response(null, { status: 499 }));
    this.#close();
  }

  keepAlive(): void {
    if (!this.#isClosed) this.#send(keepAliveComment);
  }

  #send(bytes: Uint8Array): void {
    const controller = this.#open();
    if ((controller.desiredSize ?? 0) > 0) {
      controller.enqueue(bytes);
      return;
    }
    // Its connection has the idle timeout again, so what is queued is not kept for long.
    controller.enqueue(backlogEvent);
    controller.close();
    this.#close();
  }

  #open(): ReadableStreamDefaultController<Uint8Array> {
    if (this.#controller !== undefined) return this.#controller;
    let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
    const body = new ReadableStream<Uint8Array>(
      {
        start: (given) => {
          controller = given;
        },
        cancel: () => this.cancel(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: maxStreamBacklogBytes }),
    );
    this.#controller = controller as unknown as ReadableStreamDefaultController<Uint8Array>;
    this.#resolve(new Response(body, { headers }));
    return this.#controller;
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#options.heartbeat.remove(this);
    this.#options.onClose();
  }
}
