/**
 * The engine as the main thread sees it: submit, end, observe.
 * Implementations: the Worker's transport, and tests' own.
 */
import type { EngineGauges, EngineLimits, EngineRequest, TokenChunk } from "./protocol";

export type EngineState = "loading" | "ready" | "draining" | "failed";

/** Handle of a submitted request. After the last choice's finish it does nothing. */
export interface RequestTicket {
  readonly id: number;
  /** The text of `choice` is complete after `keptTokens` generated tokens; later ones are dropped. */
  finish(choice: number, keptTokens: number): void;
  abort(): void;
}

export interface EngineClient {
  readonly state: EngineState;
  /** Valid once ready. */
  readonly limits: EngineLimits;
  /** The newest gauges, undefined before the first step. */
  readonly gauges: EngineGauges | undefined;
  /** One sentence when state is "failed". */
  readonly failure: string | undefined;
  /** Milliseconds since the engine last finished a step while it has work; 0 when it is idle. */
  progressAgeMs(): number;
  /** Requests submitted and not ended. */
  readonly numLiveRequests: number;
  /**
   * Queues a request; `onChunk` is called once a chunk, in order, on the main thread. After a chunk with
   * `finish` a choice is silent. A failed engine ends every live choice with finish "error".
   */
  submit(request: Omit<EngineRequest, "id">, onChunk: (chunk: TokenChunk) => void): RequestTicket;
  /** Drops all cached prefixes; false while something uses them. */
  flush(): Promise<boolean>;
  /** Resolves when the running requests have ended and the engine's thread is gone. */
  drain(): Promise<void>;
}
