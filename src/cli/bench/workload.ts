/** Seeded prompts and lengths for benchmarks; the same flags give the same work on every machine. */
import type { FlagValues } from "../parse-flags";

export interface BenchRequest {
  readonly tokens: Int32Array;
  readonly maxTokens: number;
}

export interface Workload {
  readonly requests: readonly BenchRequest[];
  /** Requests that would have been longer if the context were. */
  readonly numCut: number;
}

export type RandomUnit = () => number;

/** Uniform numbers in [0, 1) from a 32-bit state (Marsaglia's xorshift). */
export function seededRandom(seed: number): RandomUnit {
  let state = (Math.imul(seed + 1, 0x9e37_79b9) ^ 0x5bd1_e995) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state = (state ^ (state << 5)) >>> 0;
    return state / 2 ** 32;
  };
}

function normal(random: RandomUnit): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

/** Spread of a log-normal that resembles the lengths of chat traffic: many short, a few very long. */
const chatSigma = 1;

function drawLength(kind: string, mean: number, random: RandomUnit): number {
  if (kind === "uniform") return Math.max(1, Math.round(mean * (0.5 + random())));
  if (kind === "sharegpt") {
    // exp(mu + sigma²/2) is the mean of a log-normal.
    const mu = Math.log(mean) - chatSigma ** 2 / 2;
    return Math.max(1, Math.min(8 * mean, Math.round(Math.exp(mu + chatSigma * normal(random)))));
  }
  return mean;
}

/** Requests as the flags describe them, their lengths cut to `maxModelLen`. */
export function makeWorkload(flags: FlagValues, vocabSize: number, maxModelLen: number): Workload {
  const random = seededRandom(flags.required("workload-seed"));
  const token = () => Math.floor(random() * vocabSize);
  const prefix = Int32Array.from({ length: flags.required<number>("shared-prefix-len") }, token);
  const kind = flags.required<string>("lengths");
  let numCut = 0;
  const requests = Array.from({ length: flags.required<number>("num-prompts") }, () => {
    const wantedTokens = drawLength(kind, flags.required("output-len"), random);
    const maxTokens = Math.min(wantedTokens, maxModelLen - 1);
    const wantedLength = Math.max(prefix.length + 1, drawLength(kind, flags.required("input-len"), random));
    const length = Math.max(1, Math.min(wantedLength, maxModelLen - maxTokens));
    const tokens = Int32Array.from({ length }, token);
    tokens.set(prefix.subarray(0, Math.min(prefix.length, length - 1)));
    if (length < wantedLength || maxTokens < wantedTokens) numCut++;
    return { tokens, maxTokens };
  });
  return { requests, numCut };
}
