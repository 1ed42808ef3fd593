/**
 * Sampling values that a model's generation_config.json recommends, for requests that name none of their
 * own.
 */
import type { JsonObject } from "../../tokenizer/json";

export interface SamplingDefaults {
  readonly temperature?: number;
  readonly top_p?: number;
  readonly top_k?: number;
  readonly min_p?: number;
  readonly repetition_penalty?: number;
}

/** Largest recommendation that is believed; the smallest is 0, or what the request's own field allows. */
const largest: Readonly<Record<keyof SamplingDefaults, number>> = {
  temperature: 2,
  top_p: 1,
  top_k: 0x7fff_ffff,
  min_p: 1,
  repetition_penalty: 10,
};

/** What of `generationConfig` can be applied; a value out of range is left out. */
export function readSamplingDefaults(generationConfig: JsonObject): SamplingDefaults {
  const defaults: Record<string, number> = {};
  for (const [name, limit] of Object.entries(largest)) {
    const value = generationConfig[name];
    if (typeof value === "number" && value >= 0 && value <= limit) defaults[name] = value;
  }
  if (defaults.repetition_penalty !== undefined && defaults.repetition_penalty < 0.01) {
    delete defaults.repetition_penalty;
  }
  return defaults;
}
