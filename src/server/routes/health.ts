/** Health probes, which need no key: alive is not ready, and ready is not merely alive. */
import { Elysia } from "elysia";
import { maxEngineSilenceMs } from "../../limits";
import type { ServerContext } from "../dependencies";

export function health(context: ServerContext) {
  const detail = (summary: string) => ({ detail: { summary, tags: ["Operation"] } });
  return new Elysia({ name: "granary/health" })
    .get("/health/live", () => ({ status: "alive" }), detail("The process answers"))
    .get("/health/ready", () => readiness(context), detail("New requests will be served"))
    .get("/health", () => readiness(context), detail("As /health/ready"));
}

function readiness({ engine }: ServerContext): Response {
  const progressAgeMs = engine.progressAgeMs();
  const isStuck = progressAgeMs > maxEngineSilenceMs;
  const isReady = engine.state === "ready" && !isStuck;
  const body = {
    status: isReady ? "ready" : isStuck && engine.state === "ready" ? "stuck" : engine.state,
    progress_age_seconds: progressAgeMs / 1000,
    ...(engine.failure === undefined ? {} : { failure: engine.failure }),
  };
  return Response.json(body, isReady ? {} : { status: 503, headers: { "Retry-After": "5" } });
}
