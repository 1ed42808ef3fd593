/**
 * The two ways code here may throw: misuse by a caller
 * (coded, state unchanged) and a broken invariant (fatal).
 */

/** A caller's mistake. `code` is stable and machine-readable; the state of the callee is unchanged. */
export class GranaryError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "GranaryError";
    this.code = code;
  }
}

/** Our own promise does not hold any more: the engine dumps its state and stops. Never caught to go on. */
export class InvariantError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "InvariantError";
  }
}

/** What is said of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Throws InvariantError unless `condition` holds. Stays on in release builds. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/**
 * What `assert` does when it fails, for the step path: a message that names values is an argument like any
 * other, so `assert` would have it built, as garbage, each time its condition holds.
 */
export function broken(message: string): never {
  throw new InvariantError(message);
}

/** Throws GranaryError with `code` unless the caller kept its side. */
export function demand(condition: boolean, code: string, message: string): asserts condition {
  if (!condition) throw new GranaryError(code, message);
}

/** What `demand` does when it fails, for the step path. */
export function refuse(code: string, message: string): never {
  throw new GranaryError(code, message);
}
