/** What the gate of configurations lets through, for values that no type checker has seen. */
import { describe, expect, test } from "bun:test";
import { GranaryError } from "../../src/assert";
import { maxBatchRows } from "../../src/limits";
import { Scheduler } from "../../src/scheduler/scheduler";

/** A configuration as it comes from outside: one group, some fields other than they should be. */
function build(config: object, group: object = {}): Scheduler {
  const full = {
    prefixGranularity: 4,
    numDeviceLcmBlocks: 8,
    maxScheduledTokens: 8,
    maxBatchSize: 4,
    cacheGroups: [{ groupId: "g0", blockGranularity: 4, ...group }],
    ...config,
  };
  return new Scheduler(full);
}

function expectRefused(field: string, config: object, group?: object): void {
  let error: unknown;
  try {
    build(config, group);
  } catch (caught) {
    error = caught;
  }
  expect(error).toBeInstanceOf(GranaryError);
  const { code, message } = error as GranaryError;
  expect({ code, message }).toEqual({ code: "invalidArgument", message: expect.stringContaining(field) });
}

describe("a word that a configuration does not know", () => {
  const groupWords = {
    family: ["states", "State", "", "History"],
    retention: ["sliding", "slidingwindow", "full", ""],
    transferPolicy: ["fullsuffix", "latest", ""],
  };
  for (const [field, words] of Object.entries(groupWords)) {
    for (const word of words) {
      test(`is refused as a group's ${field}: "${word}"`, () => {
        expectRefused(field, {}, { [field]: word, slidingWindowTokens: 4 });
      });
    }
  }

  for (const word of ["fusedd", "Decode", ""]) {
    test(`is refused as a role: "${word}"`, () => expectRefused("role", { role: word }));
  }
});

describe("the size of a batch", () => {
  test("is refused when no memory would hold its slots", () => {
    for (const maxBatchSize of [maxBatchRows + 1, 2 ** 31 - 1, 2 ** 31, Number.POSITIVE_INFINITY]) {
      expectRefused("maxBatchSize", { maxBatchSize });
    }
  });

  test("is refused when it is no count", () => {
    for (const maxBatchSize of [-1, 1.5, Number.NaN, "4"]) expectRefused("maxBatchSize", { maxBatchSize });
  });

  test("may be the largest", () => {
    const scheduler = build({ maxBatchSize: maxBatchRows });
    scheduler.submit([{ requestId: "a", tokens: Int32Array.of(1, 2) }]);
    expect(scheduler.nextExecutionPlan().forward.rows.length).toBe(1);
  });
});
