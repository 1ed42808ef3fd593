/** The tokens that min-p, top-k and top-p leave of a row, by sorting all of it: the sampler's naive twin. */
import type { SamplingValues } from "./sampling";

/** Ascending ids. A token more than top-p needs, since a rounding error may move its edge by one. */
export function keptTokens(logits: Float32Array, values: SamplingValues): number[] {
  const { temperature = 1, topK = 0, topP = 1, minP = 0 } = values;
  const largest = logits.reduce((a, b) => Math.max(a, b));
  const weights = Float64Array.from(logits, (logit) =>
    Math.exp(Math.fround(Math.fround(logit - largest) / temperature)),
  );
  let ids = Array.from(weights.keys()).filter((id) => (weights[id] as number) > 0);
  ids = ids.filter((id) => (weights[id] as number) >= minP);
  ids.sort((a, b) => (logits[b] as number) - (logits[a] as number) || a - b);
  if (topK > 0) ids = ids.slice(0, topK);
  if (topP < 1) {
    const bound = ids.reduce((sum, id) => sum + (weights[id] as number), 0) * topP;
    let sum = 0;
    const length = ids.findIndex((id) => {
      sum += weights[id] as number;
      return sum >= bound;
    });
    if (length >= 0) ids = ids.slice(0, length + 2);
  }
  return ids.sort((a, b) => a - b);
}
