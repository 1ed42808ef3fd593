/**
 * The HTTP side of granary as a value: createServer builds the app, listen (in listen.ts) opens the socket.
 */
import { openapi } from "@elysiajs/openapi";
import { Elysia } from "elysia";
import type { ServerContext, ServerDependencies } from "./dependencies";
import { ApiKeyGuard, pathOf } from "./http/api-key";
import { toApiError } from "./http/error-handler";
import { checkContentLength } from "./http/json-body";
import { requestIdOf } from "./http/request-id";
import { RouteTable } from "./http/route-table";
import { ServerMetrics } from "./metrics/server-metrics";
import { chatCompletions } from "./routes/chat-completions";
import { completions } from "./routes/completions";
import { health } from "./routes/health";
import { models } from "./routes/models";
import { operation } from "./routes/operation";
import { responses, responsesSocket, socketLimits } from "./routes/responses";
import { tokenize } from "./routes/tokenize";
import { Heartbeat } from "./stream/heartbeat";

export type { ServerDependencies } from "./dependencies";

export function createServer(dependencies: ServerDependencies) {
  const context: ServerContext = {
    ...dependencies,
    metrics: new ServerMetrics(dependencies.engine, dependencies.options.version),
    heartbeat: new Heartbeat(dependencies.clock),
  };
  const guard = new ApiKeyGuard(dependencies.options.apiKeys);
  const app = new Elysia({
    name: "granary",
    normalize: false,
    websocket: socketLimits,
    // Hosts of one to three letters are hosts too; the router would cut their URLs in the wrong place.
    handler: { standardHostname: false },
  })
    .onRequest(({ request, set }) => {
      set.headers["x-request-id"] = requestIdOf(request.headers);
      guard.check(request);
      checkContentLength(request.headers);
    })
    .onError(({ code, error, request, set }) => {
      const failure =
        code === "NOT_FOUND"
          ? routes.missError(request.method, pathOf(request.url))
          : toApiError(code, error, context.log);
      set.status = failure.httpStatus;
      return failure.toResponse();
    })
    .onAfterResponse(({ set, response }) => {
      context.metrics.countResponse(
        response instanceof Response ? response.status : Number(set.status ?? 200),
      );
    })
    .use(
      openapi({
        // The description alone: its reader's pages would fetch scripts from elsewhere.
        provider: null,
        specPath: "/openapi",
        documentation: {
          info: {
            title: "granary",
            description: "OpenAI's interface to one served model, with vLLM's extensions.",
            version: dependencies.options.version,
          },
        },
      }),
    )
    .use(models(context))
    .use(chatCompletions(context))
    .use(completions(context))
    .use(responses(context))
    .ws("/v1/responses", { ...responsesSocket(context), detail: { hide: true } })
    .use(tokenize(context))
    .use(health(context))
    .use(operation(context));
  const routes = new RouteTable(() => app.routes);
  return app;
}

export type GranaryServer = ReturnType<typeof createServer>;
