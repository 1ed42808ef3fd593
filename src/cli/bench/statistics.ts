/** Percentiles, and figures as a plain table or JSON. */

/** The value below which `fraction` of the sorted values lie, nearest rank. NaN without values. */
export function percentile(values: readonly number[], fraction: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const rank = Math.min(sorted.length - 1, Math.max(0, Math.ceil(fraction * sorted.length) - 1));
  return sorted[rank] as number;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** One measured number with its unit last in the name: "ttftMs". */
export type Figures = Readonly<Record<string, number | string>>;

/** Mean, median and the upper percentiles of a set of milliseconds, under names that begin with `name`. */
export function summarise(name: string, valuesMs: readonly number[]): Figures {
  return {
    [`${name}MeanMs`]: mean(valuesMs),
    [`${name}MedianMs`]: percentile(valuesMs, 0.5),
    [`${name}P90Ms`]: percentile(valuesMs, 0.9),
    [`${name}P99Ms`]: percentile(valuesMs, 0.99),
  };
}

function format(value: number | string): string {
  if (typeof value === "string") return value;
  if (!Number.isFinite(value)) return "-";
  return Number.isInteger(value) ? String(value) : value.toFixed(Math.abs(value) < 10 ? 3 : 1);
}

export function formatFigures(figures: Figures, asJson: boolean): string {
  if (asJson) {
    const finite = Object.entries(figures).map(([key, value]) => [key, Number.isNaN(value) ? null : value]);
    return `${JSON.stringify(Object.fromEntries(finite), undefined, 1)}\n`;
  }
  const width = Math.max(...Object.keys(figures).map((name) => name.length));
  return Object.entries(figures)
    .map(([name, value]) => `${name.padEnd(width)}  ${format(value)}\n`)
    .join("");
}
