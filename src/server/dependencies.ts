/** Everything the server is given; it reads no global and opens nothing by itself. */

import type { EngineClient } from "../engine/engine-client";
import type { ModelTokenizer } from "../tokenizer/model-tokenizer";
import type { Clock } from "./clock";
import type { ServerMetrics } from "./metrics/server-metrics";
import type { SamplingDefaults } from "./parameters/sampling-defaults";
import type { Heartbeat } from "./stream/heartbeat";

/** What clients may know about the served model. */
export interface ModelCard {
  /** The name that answers carry; the first of the served names. */
  readonly id: string;
  /** Further names that requests may use. */
  readonly aliases: readonly string[];
  /** Unix seconds. */
  readonly created: number;
  /** Where the weights came from: a path or a hub name. */
  readonly root: string;
}

export interface ServerOptions {
  readonly version: string;
  /** Any of them opens the guarded routes; empty = no guard. */
  readonly apiKeys: readonly string[];
  /** Largest number of log-probabilities a position; -1 allows the whole vocabulary. */
  readonly maxLogprobs: number;
  /** For requests that name no values of their own; none = OpenAI's defaults. */
  readonly samplingDefaults?: SamplingDefaults;
  /** Overrides the limit of the same name, for tests that cannot wait so long. */
  readonly idleTimeoutSeconds?: number;
}

export interface Log {
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export type LogFields = Readonly<Record<string, string | number | boolean>>;

export interface ServerDependencies {
  readonly engine: EngineClient;
  readonly tokenizer: ModelTokenizer;
  readonly model: ModelCard;
  readonly options: ServerOptions;
  readonly clock: Clock;
  readonly log: Log;
}

/** The dependencies and what the server makes for itself, once. */
export interface ServerContext extends ServerDependencies {
  readonly metrics: ServerMetrics;
  readonly heartbeat: Heartbeat;
}
