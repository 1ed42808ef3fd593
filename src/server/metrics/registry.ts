/**
 * A small Prometheus registry: counters, histograms with fixed buckets, and values read at the moment of the
 * scrape.
 */

export type Labels = Readonly<Record<string, string>>;
type MetricKind = "counter" | "gauge" | "histogram";

interface Family {
  readonly name: string;
  readonly help: string;
  readonly kind: MetricKind;
  render(): string;
}

export class Counter {
  #value = 0;

  get value(): number {
    return this.#value;
  }

  add(amount = 1): void {
    this.#value += amount;
  }
}

/** Counts how many values fell under each bound. Nothing is allocated by an observation. */
export class Histogram {
  readonly bounds: readonly number[];
  readonly counts: Float64Array;
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  get sum(): number {
    return this.#sum;
  }

  observe(value: number): void {
    let bucket = 0;
    while (bucket < this.bounds.length && value > this.bounds[bucket]) bucket += 1;
    this.counts[bucket] += 1;
    this.#sum += value;
  }
}

export class MetricsRegistry {
  readonly #families: Family[] = [];

  /**
   * One counter for each value of `label`, all known beforehand so that every series exists from the start.
   */
  counters<Value extends string>(
    name: string,
    help: string,
    label: string,
    values: readonly Value[],
  ): Readonly<Record<Value, Counter>> {
    const counters = Object.fromEntries(values.map((value) => [value, new Counter()])) as Record<
      Value,
      Counter
    >;
    this.#add(name, help, "counter", () =>
      values.map((value) => sample(name, { [label]: value }, counters[value].value)).join(""),
    );
    return counters;
  }

  histogram(name: string, help: string, bounds: readonly number[]): Histogram {
    const histogram = new Histogram(bounds);
    this.#add(name, help, "histogram", () => renderHistogram(name, histogram));
    return histogram;
  }

  /** A value that `read` gives at the scrape; undefined leaves the series out. */
  observe(
    kind: "counter" | "gauge",
    name: string,
    help: string,
    read: () => number | undefined,
    labels: Labels = {},
  ): void {
    this.#add(name, help, kind, () => {
      const value = read();
      return value === undefined ? "" : sample(name, labels, value);
    });
  }

  render(): string {
    return this.#families
      .map(({ name, help, kind, render }) => `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${render()}`)
      .join("");
  }

  #add(name: string, help: string, kind: MetricKind, render: () => string): void {
    this.#families.push({ name, help, kind, render });
  }
}

function renderHistogram(name: string, histogram: Histogram): string {
  let cumulative = 0;
  let text = "";
  histogram.counts.forEach((count, bucket) => {
    cumulative += count;
    const bound = histogram.bounds[bucket];
    text += sample(`${name}_bucket`, { le: bound === undefined ? "+Inf" : String(bound) }, cumulative);
  });
  return `${text}${sample(`${name}_sum`, {}, histogram.sum)}${sample(`${name}_count`, {}, cumulative)}`;
}

function sample(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
  return `${name}${pairs.length > 0 ? `{${pairs.join(",")}}` : ""} ${value}\n`;
}

function escapeLabel(text: string): string {
  return text.replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\n/g, "\\n");
}
