/** How far two outputs lie apart, relative to the size of the expected one. */

/**
 * Norm of the difference over the norm of what was expected; NaN where either holds one that the other
 * has not.
 */
export function relativeError(actual: Float32Array, expected: Float32Array): number {
  let difference = 0;
  let size = 0;
  for (let i = 0; i < expected.length; i++) {
    const wanted = expected[i] as number;
    difference += ((actual[i] as number) - wanted) ** 2;
    size += wanted ** 2;
  }
  return size === 0 ? Math.sqrt(difference) : Math.sqrt(difference / size);
}

/** The largest of the rows' relative errors; NaN if there is one anywhere. */
export function largestRowError(actual: Float32Array, expected: Float32Array, columns: number): number {
  let largest = 0;
  for (let begin = 0; begin < expected.length; begin += columns) {
    const end = begin + columns;
    const error = relativeError(actual.subarray(begin, end), expected.subarray(begin, end));
    if (!(error <= largest)) largest = error;
    if (Number.isNaN(largest)) return largest;
  }
  return largest;
}

/** Largest absolute difference; NaN if there is one anywhere. */
export function largestDifference(actual: Float32Array, expected: Float32Array): number {
  let largest = 0;
  for (let i = 0; i < expected.length; i++) {
    const difference = Math.abs((actual[i] as number) - (expected[i] as number));
    if (!(difference <= largest)) largest = difference;
    if (Number.isNaN(largest)) return largest;
  }
  return largest;
}
