/**
 * Timing and its statistics: every figure is the middle of
 * several runs, scaled to the machine of the peers' figures.
 */

export function nowUs(): number {
  return Bun.nanoseconds() / 1000;
}

export interface Summary {
  readonly median: number;
  readonly mean: number;
  readonly p99: number;
  readonly p999: number;
  readonly p9999: number;
  readonly max: number;
  readonly count: number;
}

function quantile(sorted: Float64Array, q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
}

export function summarize(samples: ArrayLike<number>): Summary {
  const sorted = Float64Array.from(samples).sort();
  const sum = sorted.reduce((total, value) => total + value, 0);
  return {
    median: quantile(sorted, 0.5),
    mean: sum / Math.max(1, sorted.length),
    p99: quantile(sorted, 0.99),
    p999: quantile(sorted, 0.999),
    p9999: quantile(sorted, 0.9999),
    max: sorted[sorted.length - 1] ?? 0,
    count: sorted.length,
  };
}

/** Samples in the order of their arrival, in storage that grows by doubling. */
export class Samples {
  #items = new Float64Array(4096);
  #length = 0;

  push(value: number): void {
    if (this.#length === this.#items.length) {
      const grown = new Float64Array(this.#length * 2);
      grown.set(this.#items);
      this.#items = grown;
    }
    this.#items[this.#length++] = value;
  }

  get values(): Float64Array {
    return this.#items.subarray(0, this.#length);
  }
}

const subBuckets = 128;

/** Counts of latencies in buckets less than one percent wide: any number of samples in 16 KiB. */
export class LatencyHistogram {
  readonly #counts = new Float64Array(32 * subBuckets);
  count = 0;
  maxUs = 0;

  add(us: number): void {
    const ns = Math.min(us * 1000, 2 ** 31 - 1) | 0;
    const shift = Math.max(0, 31 - Math.clz32(ns | 1) - 7);
    this.#counts[shift * subBuckets + (ns >>> shift)]++;
    this.count++;
    if (us > this.maxUs) this.maxUs = us;
  }

  /** Upper edge, in us, of the bucket in which the quantile lies. */
  quantile(q: number): number {
    const rank = Math.floor(this.count * q);
    let seen = 0;
    for (let i = 0; i < this.#counts.length; i++) {
      seen += this.#counts[i];
      if (seen > rank) return upperEdgeUs(i);
    }
    return this.maxUs;
  }

  /** Samples above `us`, to the bucket. */
  countAbove(us: number): number {
    let above = 0;
    for (let i = this.#counts.length - 1; i >= 0 && upperEdgeUs(i) > us; i--) above += this.#counts[i];
    return above;
  }
}

function upperEdgeUs(bucket: number): number {
  const shift = Math.max(0, Math.floor(bucket / subBuckets) - 1);
  return ((bucket - shift * subBuckets + 1) * 2 ** shift) / 1000;
}

export function middle(values: readonly number[]): number {
  return quantile(Float64Array.from(values).sort(), 0.5);
}

/** Cost of reading the clock twice, to be taken off every sample. */
export function timerOverheadUs(): number {
  const samples = Array.from({ length: 20_000 }, () => {
    const start = nowUs();
    return nowUs() - start;
  });
  return middle(samples);
}

/** ns for one chained hash of a 288-byte page over 4,096 pages: how fast this machine is. */
export function pageHashNs(): number {
  const page = new Int32Array(8 + 64);
  const bytes = new Uint8Array(page.buffer);
  const digest = new Int32Array(8);
  const digestBytes = new Uint8Array(digest.buffer);
  const tokens = Int32Array.from({ length: 262_144 }, (_, i) => Math.imul(i, 2654435761) >>> 15);
  const runs = Array.from({ length: 15 }, () => {
    digest.fill(0);
    const start = Bun.nanoseconds();
    for (let i = 0; i < 4096; i++) {
      for (let k = 0; k < 8; k++) page[k] = digest[k];
      for (let k = 0; k < 64; k++) page[8 + k] = tokens[i * 64 + k];
      Bun.SHA256.hash(bytes, digestBytes);
    }
    return (Bun.nanoseconds() - start) / 4096;
  });
  return middle(runs.slice(2));
}

/** Gaps that an empty loop sees on this core for `ms`: what of a tail is not ours. */
export function spinControl(ms: number): { over1ms: number; over5ms: number; maxUs: number } {
  let over1ms = 0;
  let over5ms = 0;
  let maxUs = 0;
  const end = nowUs() + ms * 1000;
  for (let last = nowUs(); last < end; ) {
    const now = nowUs();
    const gap = now - last;
    if (gap > 1000) over1ms++;
    if (gap > 5000) over5ms++;
    if (gap > maxUs) maxUs = gap;
    last = now;
  }
  return { over1ms, over5ms, maxUs };
}

/**
 * us of the slowest percent of rounds of plain memory work that take about `workUs` each: single words of
 * 4 MB raised by one, nothing allocated. What a tail cannot be below on this machine, whoever runs.
 */
export function memoryControlUs(workUs: number): number {
  const words = new Int32Array(1 << 20).fill(1);
  let at = 1;
  const work = (count: number) => {
    const start = nowUs();
    for (let i = 0; i < count; i++) {
      at = (Math.imul(at, 1_664_525) + 1_013_904_223) >>> 0;
      words[at >>> 12] += 1;
    }
    return nowUs() - start;
  };
  const perWordUs = middle(Array.from({ length: 301 }, () => work(4096))) / 4096;
  const count = Math.max(1, Math.round(workUs / perWordUs));
  return quantile(Float64Array.from({ length: 4096 }, () => work(count)).sort(), 0.99);
}
