/** Every metric that /metrics shows: what the server measures itself and what the engine reports. */
import type { EngineClient } from "../../engine/engine-client";
import type { EngineGauges } from "../../engine/protocol";
import type { Counter, Histogram } from "./registry";
import { MetricsRegistry } from "./registry";

const firstTokenBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const interTokenBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5];
const requestBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

const finishReasons = ["stop", "length", "abort", "error"] as const;
const outcomes = ["end", "error", "abort"] as const;
const statusClasses = ["2xx", "3xx", "4xx", "5xx"] as const;

/** Field of the engine's gauges, kind, name behind `granary_`, help. */
const engineMetrics: readonly (readonly [keyof EngineGauges, "counter" | "gauge", string, string])[] = [
  ["waiting", "gauge", "requests_waiting", "Requests queued in the engine."],
  ["prefilling", "gauge", "requests_prefilling", "Requests whose prompt is being computed."],
  ["decoding", "gauge", "requests_decoding", "Requests that generate tokens."],
  ["totalLcmBlocks", "gauge", "cache_blocks", "LCM blocks of the cache."],
  [
    "availableLcmBlocks",
    "gauge",
    "cache_blocks_available",
    "LCM blocks that can be had, by eviction if need be.",
  ],
  ["emptyLcmBlocks", "gauge", "cache_blocks_empty", "LCM blocks that hold nothing."],
  ["activeLcmBlocks", "gauge", "cache_blocks_active", "LCM blocks that running requests hold."],
  ["cachedBlocks", "gauge", "cache_blocks_cached", "Cache blocks that a later prompt can reuse."],
  ["steps", "counter", "engine_steps_total", "Steps of the engine."],
  ["retractions", "counter", "retractions_total", "Requests set back because memory ran out."],
  ["evictions", "counter", "cache_evictions_total", "Cache blocks evicted."],
  ["promptTokens", "counter", "prompt_tokens_total", "Prompt tokens of admitted requests."],
  ["cachedTokens", "counter", "cached_tokens_total", "Prompt tokens taken from the cache."],
  ["generationTokens", "counter", "generation_tokens_total", "Tokens generated."],
  ["nanAborts", "counter", "nan_aborts_total", "Requests ended because their logits were not numbers."],
];

export class ServerMetrics {
  readonly finishedChoices: Readonly<Record<(typeof finishReasons)[number], Counter>>;
  readonly endedRequests: Readonly<Record<(typeof outcomes)[number], Counter>>;
  readonly responses: Readonly<Record<(typeof statusClasses)[number], Counter>>;
  readonly timeToFirstToken: Histogram;
  readonly interTokenTime: Histogram;
  readonly requestTime: Histogram;
  readonly #registry = new MetricsRegistry();

  constructor(engine: EngineClient, version: string) {
    const registry = this.#registry;
    registry.observe("gauge", "granary_build_info", "The running version.", () => 1, { version });
    this.responses = registry.counters(
      "granary_http_responses_total",
      "HTTP answers by class of status.",
      "status",
      statusClasses,
    );
    this.endedRequests = registry.counters(
      "granary_requests_total",
      "Generations by how they ended.",
      "outcome",
      outcomes,
    );
    this.finishedChoices = registry.counters(
      "granary_choices_finished_total",
      "Choices by finish reason.",
      "reason",
      finishReasons,
    );
    this.timeToFirstToken = registry.histogram(
      "granary_time_to_first_token_seconds",
      "From the request's arrival to its first token.",
      firstTokenBounds,
    );
    this.interTokenTime = registry.histogram(
      "granary_inter_token_seconds",
      "Between two tokens of one choice.",
      interTokenBounds,
    );
    this.requestTime = registry.histogram(
      "granary_request_seconds",
      "From the request's arrival to its end.",
      requestBounds,
    );
    observeEngine(registry, engine);
  }

  countResponse(status: number): void {
    const statusClass = `${Math.floor(status / 100)}xx`;
    if (statusClass in this.responses) this.responses[statusClass as (typeof statusClasses)[number]].add();
  }

  render(): string {
    return this.#registry.render();
  }
}

function observeEngine(registry: MetricsRegistry, engine: EngineClient): void {
  for (const [field, kind, name, help] of engineMetrics) {
    registry.observe(kind, `granary_${name}`, help, () => engine.gauges?.[field]);
  }
  registry.observe(
    "gauge",
    "granary_requests_live",
    "Requests that the server waits for.",
    () => engine.numLiveRequests,
  );
  registry.observe("gauge", "granary_engine_ready", "1 when the engine takes requests.", () =>
    engine.state === "ready" ? 1 : 0,
  );
  registry.observe(
    "gauge",
    "granary_engine_progress_age_seconds",
    "Since the engine's last finished step while it has work.",
    () => engine.progressAgeMs() / 1000,
  );
  registry.observe("gauge", "granary_process_resident_bytes", "Resident memory of the process.", () =>
    process.memoryUsage.rss(),
  );
}
