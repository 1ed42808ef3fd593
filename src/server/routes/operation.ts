/** GET /version and GET /metrics. */
import { Elysia } from "elysia";
import type { ServerContext } from "../dependencies";

export function operation(context: ServerContext) {
  return new Elysia({ name: "granary/operation" })
    .get("/version", () => ({ version: context.options.version }), {
      detail: { summary: "The running version", tags: ["Operation"] },
    })
    .get(
      "/metrics",
      () =>
        new Response(context.metrics.render(), {
          headers: { "Content-Type": "text/plain; version=0.0.4; charset=utf-8" },
        }),
      { detail: { summary: "Metrics for Prometheus", tags: ["Operation"] } },
    );
}
