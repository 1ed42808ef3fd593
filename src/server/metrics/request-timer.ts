/** Measures one request in the server's own clock: first token, gaps between tokens, the whole. */
import type { Clock } from "../clock";
import type { ServerMetrics } from "./server-metrics";

export class RequestTimer {
  readonly #metrics: ServerMetrics;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #startMs: number;
  /** When each choice last gave a token. */
  readonly #lastTokenMs: number[] = [];
  #hasFirstToken = false;

  constructor(metrics: ServerMetrics, clock: Pick<Clock, "monotonicMs">) {
    this.#metrics = metrics;
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
  }

  /** A chunk brought `count` tokens of choice `index`. Tokens that came together share the gap. */
  onTokens(index: number, count: number): void {
    if (count === 0) return;
    const nowMs = this.#clock.monotonicMs();
    const lastMs = this.#lastTokenMs[index];
    if (!this.#hasFirstToken) this.#metrics.timeToFirstToken.observe((nowMs - this.#startMs) / 1000);
    else if (lastMs !== undefined) {
      const gap = (nowMs - lastMs) / 1000 / count;
      for (let token = 0; token < count; token++) this.#metrics.interTokenTime.observe(gap);
    }
    this.#hasFirstToken = true;
    this.#lastTokenMs[index] = nowMs;
  }

  onFinish(reason: "stop" | "length" | "abort" | "error"): void {
    this.#metrics.finishedChoices[reason].add();
  }

  onEnd(outcome: "end" | "error" | "abort"): void {
    this.#metrics.endedRequests[outcome].add();
    this.#metrics.requestTime.observe((this.#clock.monotonicMs() - this.#startMs) / 1000);
  }
}
