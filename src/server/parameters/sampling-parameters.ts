/** How tokens are chosen: reads and checks the sampling fields of a body. */
import type { SamplingOptions } from "../../engine/protocol";
import { maxLogitBiases } from "../../limits";
import { invalidParam } from "../http/api-error";
import { inRange } from "./range";
import type { SamplingDefaults } from "./sampling-defaults";

type Maybe<T> = T | null | undefined;

export interface SamplingFields {
  readonly temperature?: Maybe<number>;
  readonly top_p?: Maybe<number>;
  readonly top_k?: Maybe<number>;
  readonly min_p?: Maybe<number>;
  readonly repetition_penalty?: Maybe<number>;
  readonly presence_penalty?: Maybe<number>;
  readonly frequency_penalty?: Maybe<number>;
  readonly logit_bias?: Maybe<Readonly<Record<string, number>>>;
  readonly seed?: Maybe<number | string>;
}

export function readSampling(
  fields: SamplingFields,
  vocabSize: number,
  defaults: SamplingDefaults = {},
): SamplingOptions {
  const topP = inRange("top_p", fields.top_p, 0, 1, defaults.top_p ?? 1);
  const topK = inRange("top_k", fields.top_k, -1, 0x7fff_ffff, defaults.top_k ?? 0);
  const seed = readSeed(fields.seed);
  const logitBias = readLogitBias(fields.logit_bias, vocabSize);
  return {
    temperature: inRange("temperature", fields.temperature, 0, 2, defaults.temperature ?? 1),
    // No probability mass at all still leaves the most likely token.
    topP: topP === 0 ? 1 : topP,
    topK: topP === 0 ? 1 : Math.max(0, topK),
    minP: inRange("min_p", fields.min_p, 0, 1, defaults.min_p ?? 0),
    repetitionPenalty: inRange(
      "repetition_penalty",
      fields.repetition_penalty,
      0.01,
      10,
      defaults.repetition_penalty ?? 1,
    ),
    presencePenalty: inRange("presence_penalty", fields.presence_penalty, -2, 2, 0),
    frequencyPenalty: inRange("frequency_penalty", fields.frequency_penalty, -2, 2, 0),
    ...(seed === undefined ? {} : { seed }),
    ...(logitBias === undefined ? {} : { logitBias }),
  };
}

/** A number above 2^53 has lost digits on its way, so such a seed must come as a decimal string. */
function readSeed(given: Maybe<number | string>): { low: number; high: number } | undefined {
  if (given === undefined || given === null) return undefined;
  const isExact = typeof given === "string" ? /^\d{1,20}$/.test(given) : Number.isSafeInteger(given);
  const seed = isExact ? BigInt(given) : -1n;
  if (seed < 0n || seed > 0xffff_ffff_ffff_ffffn) {
    throw invalidParam(
      "seed",
      "seed must be an integer from 0 to 2^64 - 1; above 2^53 - 1 send it as a decimal string.",
    );
  }
  return { low: Number(seed & 0xffff_ffffn), high: Number(seed >> 32n) };
}

function readLogitBias(
  given: Maybe<Readonly<Record<string, number>>>,
  vocabSize: number,
): { tokenId: number; bias: number }[] | undefined {
  const entries = Object.entries(given ?? {});
  if (entries.length === 0) return undefined;
  if (entries.length > maxLogitBiases) {
    throw invalidParam("logit_bias", `logit_bias may name at most ${maxLogitBiases} tokens.`);
  }
  return entries.map(([key, value]) => {
    const tokenId = /^\d{1,10}$/.test(key) ? Number(key) : -1;
    if (tokenId < 0 || tokenId >= vocabSize) {
      throw invalidParam("logit_bias", `logit_bias names ${key}, which is no token of this model.`);
    }
    return { tokenId, bias: inRange("logit_bias", value, -100, 100, 0) };
  });
}
