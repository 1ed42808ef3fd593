/**
 * One WebSocket of the Responses API: requests run one after another, each may go on from a response of this
 * connection, and the running one can be cancelled. Knows a socket only as something that sends text and
 * closes.
 */
import { maxQueuedSocketRequests } from "../../limits";
import type { JsonObject } from "../../tokenizer/json";
import { isObject } from "../../tokenizer/json";
import type { ServerContext } from "../dependencies";
import { Generation } from "../generation/generation";
import { ApiError, invalidParam } from "../http/api-error";
import { bodyCheck } from "../http/body-check";
import { toApiError } from "../http/error-handler";
import { RequestTimer } from "../metrics/request-timer";
import { type ResponseBody, responseBody } from "../schema/response";
import { newResponse } from "./new-response";
import { ResponseChain } from "./response-chain";
import type { ResponseEvents } from "./response-events";
import { planResponse, type ResponsePlan } from "./response-request";

export interface SocketSender {
  /** False when the peer does not read: the connection is over. */
  send(text: string): boolean;
}

interface RunningResponse {
  readonly events: ResponseEvents;
  readonly generation: Generation;
  readonly plan: ResponsePlan;
  readonly done: () => void;
}

const checkBody = bodyCheck(responseBody);

export class ResponsesConnection {
  readonly #context: ServerContext;
  readonly #socket: SocketSender;
  readonly #chain = new ResponseChain();
  readonly #queue: ResponseBody[] = [];
  #running: RunningResponse | undefined;
  #isWorking = false;
  #isCancelled = false;
  #isClosed = false;

  constructor(context: ServerContext, socket: SocketSender) {
    this.#context = context;
    this.#socket = socket;
  }

  /** A frame of the client: text, or the object that was in it. */
  receive(message: unknown): void {
    try {
      const event = parseEvent(message);
      if (event.type === "response.create") this.#enqueue(readBody(event));
      else if (event.type === "response.cancel") this.#cancel(event);
      else throw invalidParam("type", `Events of type '${String(event.type)}' are not known.`);
    } catch (error) {
      this.#sendError(error);
    }
  }

  /** The socket is gone. */
  close(): void {
    this.#isClosed = true;
    this.#queue.length = 0;
    this.#running?.generation.abort();
    this.#running?.done();
  }

  #enqueue(body: ResponseBody): void {
    if (this.#queue.length >= maxQueuedSocketRequests) {
      throw new ApiError(429, "Too many responses wait on this connection.", {
        type: "rate_limit_error",
        code: "too_many_requests",
      });
    }
    this.#queue.push(body);
    if (!this.#isWorking) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isWorking = true;
    for (let body = this.#queue.shift(); body !== undefined; body = this.#queue.shift()) {
      this.#isCancelled = false;
      try {
        await this.#respond(body);
      } catch (error) {
        this.#sendError(error);
      }
    }
    this.#isWorking = false;
  }

  async #respond(body: ResponseBody): Promise<void> {
    const plan = await planResponse(this.#context, body, this.#chain);
    if (this.#isClosed) return;
    const events = newResponse(this.#context, body, plan.withLogprobs);
    const { promise, resolve: done } = Promise.withResolvers<void>();
    const timer = new RequestTimer(this.#context.metrics, this.#context.clock);
    const generation: Generation = new Generation(this.#context, plan.generation, timer, {
      onUpdate: (_index, update) => this.#send(events.update(update)),
      onEnd: () => {
        this.#remember(events, plan);
        this.#send(events.end(generation.usage));
        done();
      },
      onError: (error) => {
        this.#send(events.fail(error));
        done();
      },
    });
    this.#running = { events, generation, plan, done };
    this.#send(events.begin());
    if (this.#isCancelled) this.#cancelRunning();
    else generation.start();
    await promise;
    this.#running = undefined;
  }

  #remember(events: ResponseEvents, plan: ResponsePlan): void {
    const isWarmUp = events.identity.body.generate === false;
    const answer: JsonObject[] = isWarmUp ? [] : [{ role: "assistant", content: events.text }];
    this.#chain.add(events.identity.id, plan.earlier, [...plan.added, ...answer]);
  }

  /** Without an id, whatever is running; the request that is still being read counts as running. */
  #cancel(event: JsonObject): void {
    const id = event.response_id;
    const isOther = typeof id === "string" && id !== this.#running?.events.identity.id;
    if (!this.#isWorking || isOther) {
      throw invalidParam("response_id", "No such response is running.", "response_not_found");
    }
    this.#isCancelled = true;
    this.#cancelRunning();
  }

  #cancelRunning(): void {
    if (this.#running === undefined) return;
    const { events, generation, plan, done } = this.#running;
    generation.abort();
    this.#remember(events, plan);
    this.#send(events.cancel(generation.usage));
    done();
  }

  #send(events: readonly { readonly type: string }[]): void {
    for (const event of events) {
      if (this.#isClosed) return;
      if (!this.#socket.send(JSON.stringify(event))) this.close();
    }
  }

  /**
   * An error that belongs to no response, in the flat form of the types and in the nested form of the
   * service.
   */
  #sendError(error: unknown): void {
    const failure = toApiError("UNKNOWN", error, this.#context.log);
    const { message, code, param, httpStatus } = failure;
    const flat = { type: "error", status: httpStatus, code, message, param, sequence_number: 0 };
    this.#send([{ ...flat, ...failure.body }]);
  }
}

function parseEvent(message: unknown): JsonObject {
  let event = message;
  try {
    if (typeof message === "string") event = JSON.parse(message);
  } catch {
    throw new ApiError(400, "The event is not valid JSON.", { code: "invalid_json" });
  }
  if (!isObject(event)) throw new ApiError(400, "An event is a JSON object.", { code: "invalid_json" });
  return event;
}

/** Some clients wrap the body of the request in `response`. */
function readBody(event: JsonObject): ResponseBody {
  const { type: _type, ...fields } = event;
  return checkBody(isObject(fields.response) ? fields.response : fields);
}
