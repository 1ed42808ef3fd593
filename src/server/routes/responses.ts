/** /v1/responses: POST for one response, and the WebSocket of the same path for many. */
import { Elysia } from "elysia";
import { idleTimeoutSeconds, maxRequestBodyBytes, maxStreamBacklogBytes } from "../../limits";
import { runStream } from "../answers/run-stream";
import { runToEnd } from "../answers/run-whole";
import type { ServerContext } from "../dependencies";
import { ApiError } from "../http/api-error";
import { holdOpen } from "../http/hold-open";
import { jsonBody } from "../http/json-body";
import { newResponse } from "../responses/new-response";
import { planResponse } from "../responses/response-request";
import { ResponseStream } from "../responses/response-stream";
import { ResponsesConnection } from "../responses/responses-connection";
import { type ResponseBody, responseBody } from "../schema/response";

/** POST, and GET for those who forgot to upgrade. */
export function responses(context: ServerContext) {
  return new Elysia({ name: "granary/responses" })
    .post(
      "/v1/responses",
      ({ body, request, server }) =>
        holdOpen(context, server, request, (release) => answer(context, body, request.signal, release)),
      { ...jsonBody(responseBody), detail: { summary: "One response", tags: ["Generation"] } },
    )
    .get("/v1/responses", upgradeRequired, {
      detail: { summary: "Responses over a WebSocket", tags: ["Generation"] },
    });
}

/** Limits of every WebSocket; the app takes them when it is made. */
export const socketLimits = {
  idleTimeout: idleTimeoutSeconds,
  sendPings: true,
  maxPayloadLength: maxRequestBodyBytes,
  backpressureLimit: maxStreamBacklogBytes,
  closeOnBackpressureLimit: true,
};

/**
 * Handlers of the WebSocket. Elysia only finds its socket for routes of the app itself, so they are no
 * plugin.
 */
export function responsesSocket(context: ServerContext) {
  const connections = new Map<string, ResponsesConnection>();
  return {
    open({ id, raw }: OpenSocket) {
      const send = (text: string) => {
        // 0 = dropped: the peer's backlog is full, or it is gone.
        if (raw.send(text) !== 0) return true;
        raw.close(1013, "the client does not read");
        return false;
      };
      connections.set(id, new ResponsesConnection(context, { send }));
    },
    message({ id }: OpenSocket, message: unknown) {
      connections.get(id)?.receive(message);
    },
    close({ id }: OpenSocket) {
      connections.get(id)?.close();
      connections.delete(id);
    },
  };
}

/** What is needed of Elysia's socket. */
interface OpenSocket {
  readonly id: string;
  readonly raw: { send(text: string): number; close(code: number, reason: string): void };
}

function upgradeRequired(): never {
  throw new ApiError(426, "This path speaks WebSocket; use POST for one response.", {
    code: "upgrade_required",
    headers: { Upgrade: "websocket", Connection: "Upgrade" },
  });
}

async function answer(context: ServerContext, body: ResponseBody, signal: AbortSignal, release: () => void) {
  const { generation, withLogprobs } = await planResponse(context, body, undefined);
  const events = newResponse(context, body, withLogprobs);
  if (body.stream === true) {
    return runStream(context, generation, new ResponseStream(events), signal, release);
  }
  const ended = await runToEnd(context, generation, signal, (_index, update) => {
    events.update(update);
  });
  return events.final(ended.usage);
}
