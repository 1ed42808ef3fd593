/** Marks a test as the check of numbered behaviours; `coverage.ts` counts the numbers. */
import { test } from "bun:test";

/** `scenario(12, 13)("sentence", body)` checks behaviours 12 and 13. */
export function scenario(..._numbers: number[]): (name: string, body: () => void) => void {
  return (name, body) => test(name, body);
}
