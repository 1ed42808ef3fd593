/**
 * One timer for all open streams: it finds those that have been silent and lets them say that they are
 * alive.
 */
import { firstKeepAliveMs, nextKeepAliveMs } from "../../limits";
import type { Clock } from "../clock";

export interface HeartbeatMember {
  keepAlive(): void;
}

interface Beat {
  dueMs: number;
}

const tickMs = 500;

export class Heartbeat {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #beats = new Map<HeartbeatMember, Beat>();
  #timer: Timer | undefined;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  add(member: HeartbeatMember): void {
    this.#beats.set(member, { dueMs: this.#clock.monotonicMs() + firstKeepAliveMs });
    this.#timer ??= setInterval(() => this.tick(), tickMs);
  }

  /** The member has just sent something. */
  touch(member: HeartbeatMember): void {
    const beat = this.#beats.get(member);
    if (beat !== undefined) beat.dueMs = this.#clock.monotonicMs() + firstKeepAliveMs;
  }

  remove(member: HeartbeatMember): void {
    this.#beats.delete(member);
    if (this.#beats.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  tick(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [member, beat] of this.#beats) {
      if (nowMs < beat.dueMs) continue;
      beat.dueMs = nowMs + nextKeepAliveMs;
      member.keepAlive();
    }
  }
}
