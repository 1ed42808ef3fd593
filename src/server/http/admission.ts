/** Whether a new generation may begin at all: the engine must be there, staying, and not overrun. */
import type { EngineClient } from "../../engine/engine-client";
import { maxLiveRequests } from "../../limits";
import { ApiError, unavailable } from "./api-error";

export function checkAdmission(engine: EngineClient): void {
  switch (engine.state) {
    case "loading":
      throw unavailable("The model is still being loaded.", 5);
    case "draining":
      throw unavailable("The server is shutting down.", 10);
    case "failed":
      throw new ApiError(503, `The engine has failed: ${engine.failure ?? "no reason is known"}`, {
        type: "service_unavailable_error",
        code: "engine_failed",
      });
    case "ready":
      break;
  }
  if (engine.numLiveRequests >= maxLiveRequests) {
    throw new ApiError(429, "Too many requests are waiting; try again later.", {
      type: "rate_limit_error",
      code: "too_many_requests",
      headers: { "Retry-After": "1" },
    });
  }
}
