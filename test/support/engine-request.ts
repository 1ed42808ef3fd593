/** Requests as the engine takes them: greedy, four tokens, unless told otherwise. */
import type { EngineRequest, SamplingOptions, StopOptions } from "../../src/engine/protocol";

export interface RequestChanges extends Partial<Omit<EngineRequest, "sampling" | "stop">> {
  readonly sampling?: Partial<SamplingOptions>;
  readonly stop?: Partial<StopOptions>;
}

export function engineRequest(changes: RequestChanges = {}): EngineRequest {
  const { sampling, stop, ...rest } = changes;
  return {
    id: 1,
    tokens: Int32Array.of(5, 6, 7),
    numChoices: 1,
    sampling: {
      temperature: 0,
      topP: 1,
      topK: 0,
      minP: 0,
      repetitionPenalty: 1,
      presencePenalty: 0,
      frequencyPenalty: 0,
      ...sampling,
    },
    stop: { maxTokens: 4, minTokens: 0, ignoreEos: false, stopTokenIds: [], ...stop },
    ...rest,
  };
}
