/** The check of a plan's operations against a set of strings. */
import { describe, expect, test } from "bun:test";
import { assertWellFormed } from "../../../src/cache/tier/transfer-check";
import type { TransferOp } from "../../../src/cache/tier/transfer-types";
import { Random } from "../../support/random";

type Transfer = readonly [group: number, source: number, destination: number];

function opOf(opId: number, transfers: readonly Transfer[]): TransferOp {
  const column = (at: 0 | 1 | 2) => Int32Array.from(transfers, (transfer) => transfer[at]);
  return {
    opId,
    numTransfers: transfers.length,
    groups: column(0),
    sources: column(1),
    destinations: column(2),
    contentHashes: new Int32Array(transfers.length * 8),
    pageOffsets: new Int32Array(transfers.length),
  };
}

describe("a plan's operations", () => {
  test("are refused exactly when a copy repeats, whatever earlier plans copied", () => {
    const random = new Random(8);
    let numRepeats = 0;
    for (let plan = 0; plan < 3000; plan++) {
      const span = random.integer(2, 60);
      const draw = (): Transfer => [random.integer(0, 2), random.integer(1, span), random.integer(1, span)];
      const ops = Array.from({ length: random.integer(1, 3) }, (_, opId) =>
        opOf(opId, Array.from({ length: random.integer(1, 12) }, draw)),
      );
      const keys = ops.flatMap(({ groups, sources, destinations }) =>
        Array.from(groups, (group, i) => `${group} ${sources[i]} ${destinations[i]}`),
      );
      const repeats = new Set(keys).size < keys.length;
      if (repeats) numRepeats++;
      const check = () => assertWellFormed(ops);
      if (repeats) expect(check).toThrow("repeats within one plan");
      else expect(check).not.toThrow();
    }
    expect(numRepeats).toBeGreaterThan(300);
    expect(numRepeats).toBeLessThan(2700);
  });

  test("may be large, and are as many again in the next plan", () => {
    const large = opOf(
      0,
      Array.from({ length: 5000 }, (_, i): Transfer => [i & 1, i, i + 7]),
    );
    for (let plan = 0; plan < 2; plan++) expect(() => assertWellFormed([large])).not.toThrow();
    expect(() => assertWellFormed([large, opOf(1, [[1, 4999, 5006]])])).toThrow("repeats within one plan");
  });
});
