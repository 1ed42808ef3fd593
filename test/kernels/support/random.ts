/** Seeded random numbers for kernel tests: the same seed gives the same operands on every device. */

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Uniform in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
    return ((x ^ (x >>> 15)) >>> 0) / 2 ** 32;
  }

  /** Uniform integer in [low, high]. */
  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.integer(0, choices.length - 1)] as T;
  }

  /** Roughly normal: the sum of three uniforms, scaled to the deviation. */
  normal(deviation = 1): number {
    return (this.next() + this.next() + this.next() - 1.5) * 2 * deviation;
  }

  normals(count: number, deviation = 1): Float32Array {
    return Float32Array.from({ length: count }, () => this.normal(deviation));
  }

  integers(count: number, low: number, high: number): Int32Array {
    return Int32Array.from({ length: count }, () => this.integer(low, high));
  }

  /** A permutation of 0 .. count - 1. */
  permutation(count: number): Int32Array {
    const order = Int32Array.from({ length: count }, (_, i) => i);
    for (let i = count - 1; i > 0; i--) {
      const j = this.integer(0, i);
      const swapped = order[i] as number;
      order[i] = order[j] as number;
      order[j] = swapped;
    }
    return order;
  }
}
