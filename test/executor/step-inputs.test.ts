/** The integers of a step as the device reads them: rows, positions, lengths, who is sampled. */
import { afterAll, describe, expect, test } from "bun:test";
import { StepInputs } from "../../src/executor/step-inputs";
import type { ForwardRow } from "../../src/scheduler/plan";
import { openCpuDevice } from "../support/cpu-device";
import { decodeRow, planOf, prefillRow } from "../support/hand-made-plan";

const device = openCpuDevice();
afterAll(() => device.close());

const bounds = { maxRows: 32, maxSeqs: 4, maxSeqLen: 64, maxLogitRows: 4 };
const tokens = Int32Array.from({ length: 40 }, (_, i) => 100 + i);

function uploaded(rows: readonly ForwardRow[], padded = 0) {
  const inputs = new StepInputs(device, bounds);
  const plan = planOf(rows.map((row) => ({ row, changes: [] })));
  const shape = inputs.upload(plan.forward, padded);
  const read = (address: number, count: number) => {
    const values = new Int32Array(count);
    device.download(values, address);
    return [...values];
  };
  const { operands } = inputs;
  return {
    shape,
    sampled: inputs.sampled.map(({ row, index }) => [row.slot, index]),
    tokenIds: read(operands.tokenIds, shape.rows + padded),
    positions: read(operands.positions, shape.rows),
    prefill: {
      tableRows: read(operands.prefillTableRows, shape.prefillSeqs),
      starts: read(operands.prefillQueryStarts, shape.prefillSeqs + 1),
      lengths: read(operands.prefillSeqLens, shape.prefillSeqs),
    },
    decode: {
      tableRows: read(operands.decodeTableRows, Math.max(padded, shape.decodeSeqs)),
      lengths: read(operands.decodeSeqLens, Math.max(padded, shape.decodeSeqs)),
    },
    samples: {
      rows: read(inputs.sampleRows, Math.max(padded, inputs.sampled.length)),
      slots: read(inputs.sampleSlots, Math.max(padded, inputs.sampled.length)),
      positions: read(inputs.samplePositions, inputs.sampled.length),
    },
  };
}

describe("a step", () => {
  test("of prompts has their tokens one after another, and samples those that are complete", () => {
    const whole = tokens.subarray(0, 3);
    const step = uploaded([
      prefillRow({ slot: 4, tokens, begin: 10, size: 2 }),
      prefillRow({ slot: 2, tokens: whole }),
    ]);
    expect(step.shape).toEqual({
      rows: 5,
      prefillSeqs: 2,
      prefillRows: 5,
      maxQueryTokens: 3,
      decodeSeqs: 0,
      maxSeqLen: 12,
    });
    expect(step.tokenIds).toEqual([110, 111, 100, 101, 102]);
    expect(step.positions).toEqual([10, 11, 0, 1, 2]);
    expect(step.prefill).toEqual({ tableRows: [4, 2], starts: [0, 2, 5], lengths: [12, 3] });
    expect(step.sampled).toEqual([[2, 1]]);
    expect(step.samples).toEqual({ rows: [4], slots: [2], positions: [3] });
  });

  test("feeds re-fed tokens before the new ones", () => {
    const step = uploaded([prefillRow({ slot: 1, tokens, begin: 8, size: 2, replay: 3 })]);
    expect(step.tokenIds).toEqual([105, 106, 107, 108, 109]);
    expect(step.positions).toEqual([5, 6, 7, 8, 9]);
    expect(step.prefill).toEqual({ tableRows: [1], starts: [0, 5], lengths: [10] });
    expect(step.shape.maxQueryTokens).toBe(5);
  });

  test("of answers samples every row; an id that only the device knows names its slot", () => {
    const step = uploaded([
      decodeRow({ slot: 3, begin: 20, tokens }),
      decodeRow({ slot: 1, begin: 5, tokens, decodeInputId: 77 }),
    ]);
    expect(step.shape).toMatchObject({ rows: 2, prefillSeqs: 0, decodeSeqs: 2, maxSeqLen: 21 });
    expect(step.tokenIds).toEqual([-4, 77]);
    expect(step.decode).toEqual({ tableRows: [3, 1], lengths: [21, 6] });
    expect(step.samples).toEqual({ rows: [0, 1], slots: [3, 1], positions: [21, 6] });
  });

  test("of both has the prompts first", () => {
    const step = uploaded([
      decodeRow({ slot: 3, begin: 20, tokens }),
      prefillRow({ slot: 1, tokens: tokens.subarray(0, 2) }),
    ]);
    expect(step.tokenIds).toEqual([100, 101, -4]);
    expect(step.sampled).toEqual([
      [1, 0],
      [3, 1],
    ]);
    expect(step.samples.rows).toEqual([1, 2]);
  });

  test("is filled up with rows that compute nothing and are not sampled", () => {
    const step = uploaded([decodeRow({ slot: 2, begin: 7, tokens })], 4);
    expect(step.shape.decodeSeqs).toBe(1);
    expect(step.tokenIds.slice(1, 4)).toEqual([0, 0, 0]);
    expect(step.decode).toEqual({ tableRows: [2, 0, 0, 0], lengths: [8, 0, 0, 0] });
    expect(step.samples.rows).toEqual([0, -1, -1, -1]);
    expect(step.samples.slots).toEqual([2, -1, -1, -1]);
  });
});
