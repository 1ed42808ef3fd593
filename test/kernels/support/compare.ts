/** Compares outputs of two runs: exactly, or within a tolerance. */
import type { Outputs, Tolerance } from "../cases/kernel-case";

/** The first difference in words, or undefined. NaN equals NaN, an infinity only itself. */
export function firstDifference(
  actual: Outputs,
  expected: Outputs,
  tolerance: Tolerance,
): string | undefined {
  for (const [name, wanted] of Object.entries(expected)) {
    const got = actual[name];
    if (got === undefined || got.length !== wanted.length)
      return `${name}: ${got?.length} values, not ${wanted.length}`;
    const isExact = wanted instanceof Int32Array || wanted instanceof Uint32Array;
    for (let i = 0; i < wanted.length; i++) {
      const a = got[i] as number;
      const b = wanted[i] as number;
      if (Object.is(a, b) || a === b) continue;
      const allowed = isExact ? 0 : tolerance.absolute + tolerance.relative * Math.abs(b);
      if (!(Math.abs(a - b) <= allowed)) return `${name}[${i}] is ${a}, expected ${b} within ${allowed}`;
    }
  }
  return undefined;
}

/** Byte by byte. */
export function firstUnequalOutput(actual: Outputs, expected: Outputs): string | undefined {
  for (const [name, wanted] of Object.entries(expected)) {
    const got = actual[name];
    if (got === undefined) return name;
    const a = new Uint8Array(got.buffer, got.byteOffset, got.byteLength);
    const b = new Uint8Array(wanted.buffer, wanted.byteOffset, wanted.byteLength);
    if (Buffer.compare(a, b) !== 0) return name;
  }
  return undefined;
}
