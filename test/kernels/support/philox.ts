/** Philox4x32-10 with big integers, as its paper writes it. */

const mask = 0xffff_ffffn;

/** The four words for a counter of four words and a key of two. */
export function philox(counter: readonly number[], key: readonly number[]): number[] {
  let [c0, c1, c2, c3] = counter.map((word) => BigInt(word >>> 0)) as [bigint, bigint, bigint, bigint];
  let [k0, k1] = key.map((word) => BigInt(word >>> 0)) as [bigint, bigint];
  for (let round = 0; round < 10; round++) {
    const product0 = 0xd2511f53n * c0;
    const product1 = 0xcd9e8d57n * c2;
    [c0, c1, c2, c3] = [
      (product1 >> 32n) ^ c1 ^ k0,
      product1 & mask,
      (product0 >> 32n) ^ c3 ^ k1,
      product0 & mask,
    ];
    k0 = (k0 + 0x9e3779b9n) & mask;
    k1 = (k1 + 0xbb67ae85n) & mask;
  }
  return [c0, c1, c2, c3].map(Number);
}

/** The number in (0, 1) that a draw of the sampler uses. */
export function uniformOf(seed: readonly number[], position: number, choice: number, draw: number): number {
  const [x] = philox([position, choice, draw, 0], seed);
  return ((x as number) + 0.5) / 2 ** 32;
}
