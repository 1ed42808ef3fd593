/** Tenants' roots as callers hold them: views of shared memory, buffers that change, wrong sizes. */
import { describe, expect, test } from "bun:test";
import { Scheduler } from "../../src/scheduler/scheduler";
import { configOf, Driver, F, rowOf, tokens } from "./driver";

/** Runs a prompt to its end under a root. */
function serve(d: Driver, id: string, namespaceRoot: Uint8Array): void {
  d.submit(id, tokens(9), { namespaceRoot });
  d.step();
  d.step();
  d.send({ kind: "finish", request: d.handle(id) });
}

/** Hit tokens of a prompt that was served before under `first`, submitted under `second`. */
function hitTokens(first: Uint8Array, second: Uint8Array): number {
  const d = new Driver({ P: 4, pool: 31, T: 64, groups: [F(4)] });
  serve(d, "a", first);
  d.submit("b", tokens(9), { namespaceRoot: second });
  return rowOf(d.plan(), "b").deviceHitTokens;
}

describe("a namespace root", () => {
  test("is its own bytes, also as a view of a buffer that others share", () => {
    const shared = Buffer.concat([Buffer.alloc(3, 1), Buffer.alloc(32, 0xaa), Buffer.alloc(32, 0xbb)]);
    const [a, b] = [shared.subarray(3, 35), shared.subarray(35, 67)];
    expect(hitTokens(a, b)).toBe(0);
    expect(hitTokens(a, Uint8Array.from(a))).toBe(8);
    expect(hitTokens(Uint8Array.from(b), b)).toBe(8);
  });

  test("is taken as it is at submission", () => {
    const d = new Driver({ P: 4, pool: 31, T: 64, groups: [F(4)] });
    const root = new Uint8Array(32).fill(1);
    serve(d, "a", Uint8Array.from(root));
    d.submit("b", tokens(9), { namespaceRoot: root });
    root.fill(2);
    expect(rowOf(d.plan(), "b").deviceHitTokens).toBe(8);
  });

  for (const length of [0, 28, 31, 33, 64]) {
    test(`of ${length} bytes is refused wherever it is given, and nothing is queued`, () => {
      const scheduler = new Scheduler(configOf({ P: 4, pool: 31, groups: [F(4)] }));
      const namespaceRoot = new Uint8Array(length);
      const spec = (requestId: string) => ({ requestId, tokens: Int32Array.from(tokens(9)) });
      expect(() => scheduler.submit([spec("a"), { ...spec("b"), namespaceRoot }])).toThrow("32 bytes");
      expect(scheduler.gauges().waiting).toBe(0);
      expect(() => scheduler.prefixHashesForTokens(Int32Array.from(tokens(9)), namespaceRoot)).toThrow(
        "32 bytes",
      );
    });
  }
});
