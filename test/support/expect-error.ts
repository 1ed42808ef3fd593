/** Checks that something throws a coded error whose message says what it must say. */
import { expect } from "bun:test";

/** The error's message; fails unless `act` throws an error with this code and all of these texts. */
export function expectError(act: () => unknown, code: string, ...texts: readonly string[]): string {
  let thrown: unknown;
  try {
    act();
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(Error);
  const { message, code: actual } = thrown as Error & { code?: string };
  expect(`${actual}: ${message}`).toStartWith(`${code}: `);
  for (const text of texts) expect(message).toContain(text);
  return message;
}
