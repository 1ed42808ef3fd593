/**
 * The rows that `scripts/bench-scheduler` prints: what each
 * measures and what it must not exceed, in microseconds.
 */

export interface RowResult {
  readonly row: string;
  readonly value: number;
  readonly target: number;
  readonly unit: "us" | "ms" | "bytes" | "count";
  /**
   * Gaps over 1 ms that an empty loop saw on the same core
   * for as long, beside figures that a neighbour can spoil.
   */
  readonly spinGaps?: number;
  /** The same tail of plain memory work that takes as long as the row's median. */
  readonly controlUs?: number;
}

export interface RowSpec {
  readonly row: string;
  readonly target: number;
  readonly unit?: RowResult["unit"];
  readonly isTail?: boolean;
}

export const rowSpecs = {
  w1: (batch: number): RowSpec[] => {
    const [median, mean, p99] = { 1: [0.5, 1, 5], 32: [8, 15, 100], 256: [70, 110, 900] }[batch] as number[];
    return [
      { row: `W1 B=${batch} decode round, median`, target: median },
      { row: `W1 B=${batch} decode round, mean`, target: mean, isTail: true },
      { row: `W1 B=${batch} decode round, p99`, target: p99, isTail: true },
    ];
  },
  w3: (batch: number): RowSpec[] => {
    const [median, mean] = { 1: [1, 2], 32: [18, 30], 256: [150, 220] }[batch] as number[];
    return [
      { row: `W3 B=${batch} decode round, median`, target: median },
      { row: `W3 B=${batch} decode round, mean`, target: mean, isTail: true },
    ];
  },
} as const;

export function formatRow({ row, value, target, unit, spinGaps, controlUs }: RowResult): string {
  const verdict = value <= target ? "" : "  MISSED";
  const spin = spinGaps === undefined ? "" : `  (spin control: ${spinGaps} gaps over 1 ms)`;
  const control = controlUs === undefined ? "" : `  (memory control: ${controlUs.toFixed(0)} us)`;
  const shown = unit === "count" || unit === "bytes" ? value.toFixed(0) : value.toFixed(2);
  const figure = `${row.padEnd(52)} ${shown.padStart(10)} ${unit.padEnd(5)}`;
  return `${figure} target ${target}${verdict}${spin}${control}`;
}
