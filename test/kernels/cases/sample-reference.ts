/** Sampling by sorting the vocabulary in double precision. */
import { uniformOf } from "../support/philox";
import { plainSampling, type SamplingParams } from "../support/sampling-params";

export interface SampleRow {
  readonly logits: Float32Array;
  readonly params: SamplingParams;
  readonly position: number;
  readonly draw: number;
  readonly counts?: Uint32Array;
  readonly biasIds: Int32Array;
  readonly biasValues: Float32Array;
  readonly suppressedIds: Int32Array;
  readonly allowed?: (id: number) => boolean;
}

type FullParams = Readonly<Record<keyof SamplingParams, number>>;

const fullParams = (params: SamplingParams): FullParams =>
  new Proxy({ ...plainSampling, ...params } as FullParams, {
    get: (all, name) => Reflect.get(all, name) ?? 0,
  });

function adjusted(row: SampleRow, params: FullParams): number[] {
  const logits = Array.from(row.logits, (logit, id) => {
    const count = params.usesCounts ? (row.counts?.[id] ?? 0) : 0;
    if (count === 0) return logit;
    const times = count & 0x7fffffff;
    const repeated = logit > 0 ? logit / params.repetitionPenalty : logit * params.repetitionPenalty;
    return repeated - params.frequencyPenalty * times - (times > 0 ? params.presencePenalty : 0);
  });
  for (let i = 0; i < params.numBiases; i++) {
    const id = row.biasIds[i] as number;
    logits[id] = (logits[id] as number) + (row.biasValues[i] as number);
  }
  if (row.position < params.suppressBelow) {
    for (let i = 0; i < params.numSuppressed; i++) logits[row.suppressedIds[i] as number] = -Infinity;
  }
  return logits.map((logit, id) => (row.allowed?.(id) === false ? -Infinity : logit));
}

interface Candidate {
  readonly id: number;
  readonly logit: number;
  readonly weight: number;
}

/** Candidates that min-p, top-k and top-p leave, best first. */
function likely(logits: readonly number[], params: FullParams): Candidate[] {
  const largest = Math.max(...logits);
  let candidates = logits
    .map((logit, id) => ({ id, logit, weight: Math.exp((logit - largest) / params.temperature) }))
    .filter(({ weight }) => weight > 0 && weight >= Math.min(params.minP, 1))
    .sort((a, b) => b.logit - a.logit || a.id - b.id);
  if (params.topK > 0) candidates = candidates.slice(0, params.topK);
  if (params.topP < 1) {
    const total = candidates.reduce((sum, { weight }) => sum + weight, 0);
    let before = 0;
    candidates = candidates.filter(({ weight }, i) => {
      const stays = i === 0 || before < params.topP * total;
      before += weight;
      return stays;
    });
  }
  return candidates;
}

/** The token, or -1. */
export function sampleReference(row: SampleRow): number {
  const params = fullParams(row.params);
  if (row.logits.some(Number.isNaN)) return -1;
  const logits = adjusted(row, params);
  if (logits.some(Number.isNaN) || !logits.some(Number.isFinite)) return -1;
  if (params.temperature === 0) return logits.indexOf(Math.max(...logits));
  const kept = likely(logits, params).sort((a, b) => a.id - b.id);
  const total = kept.reduce((sum, { weight }) => sum + weight, 0);
  const u = uniformOf([params.seedLow, params.seedHigh], row.position, params.choice, row.draw);
  let sum = 0;
  for (const { id, weight } of kept) {
    sum += weight;
    if (sum > u * total) return id;
  }
  return kept.at(-1)?.id ?? -1;
}
