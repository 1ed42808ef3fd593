/** Log-probabilities of reference logits, in double precision. */

export function logSoftmaxRow(logits: Float32Array): Float64Array {
  const largest = logits.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  const sum = logits.reduce((total, value) => total + Math.exp(value - largest), 0);
  return Float64Array.from(logits, (value) => value - largest - Math.log(sum));
}

/** Largest difference between log-probabilities [prompt position - 1][id] and a reference's known rows. */
export function worstDifference(
  actual: readonly (readonly number[])[],
  rows: Int32Array,
  logits: Float32Array,
  vocabSize: number,
): number {
  let worst = 0;
  rows.forEach((position, index) => {
    const row = actual[position];
    // The last position predicts a token that the prompt does not hold.
    if (row === undefined) return;
    const expected = logSoftmaxRow(logits.subarray(index * vocabSize, (index + 1) * vocabSize));
    row.forEach((value, id) => {
      const difference = Math.abs(value - (expected[id] as number));
      worst = Number.isNaN(difference) ? Number.POSITIVE_INFINITY : Math.max(worst, difference);
    });
  });
  return worst;
}
