/** Loading progress on standard error: a line that moves on a terminal, a line now and then elsewhere. */
import { progressIntervalMs } from "../limits";
import type { Runtime } from "./runtime";

export class ProgressLine {
  readonly #runtime: Pick<Runtime, "clockMs" | "err" | "isTerminal">;
  readonly #startedMs: number;
  #shownMs: number;
  #isOpen = false;

  constructor(runtime: Pick<Runtime, "clockMs" | "err" | "isTerminal">) {
    this.#runtime = runtime;
    this.#startedMs = runtime.clockMs();
    this.#shownMs = this.#startedMs;
  }

  /** Shows nothing for loads that end before the first interval. */
  update(stage: string, fraction: number): void {
    const nowMs = this.#runtime.clockMs();
    if (nowMs - this.#shownMs < progressIntervalMs) return;
    this.#shownMs = nowMs;
    const seconds = ((nowMs - this.#startedMs) / 1000).toFixed(0);
    const text = `loading ${(fraction * 100).toFixed(0)} %, ${seconds} s: ${stage}`;
    this.#runtime.err(this.#runtime.isTerminal ? `\r\x1b[K${text}` : `${text}\n`);
    this.#isOpen = this.#runtime.isTerminal;
  }

  close(): void {
    if (this.#isOpen) this.#runtime.err("\n");
    this.#isOpen = false;
  }
}
