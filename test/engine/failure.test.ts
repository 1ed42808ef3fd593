/** What a broken engine tells before it stops. */
import { describe, expect, spyOn, test } from "bun:test";
import { InvariantError } from "../../src/assert";
import { describeFailure } from "../../src/engine/worker";
import { Scheduler } from "../../src/scheduler/scheduler";
import { EngineDriver } from "../support/engine-driver";
import { loadReferenceCase } from "../support/reference-case";

describe("a failure", () => {
  test("while loading is one sentence", () => {
    expect(describeFailure(new Error("no such file"), undefined)).toEqual({ error: "no such file" });
  });

  test("of a running engine comes with its requests, plans and blocks", () => {
    const driver = EngineDriver.open("llama");
    const id = driver.submit(loadReferenceCase("llama").prompt("a"));
    driver.engine.step();
    driver.engine.step();
    const { error, dump } = describeFailure(new InvariantError("a promise broke"), driver.engine);
    expect(error).toBe("a promise broke");
    const state = JSON.parse((dump ?? "").slice((dump ?? "").indexOf("\n{")));
    expect(state.choices).toMatchObject([{ request: id, choice: 0, promptTokens: 304, numGenerated: 2 }]);
    expect(state.scheduler.decoding).toBe(1);
    expect(state.scheduler.activeLcmBlocks).toBeGreaterThan(0);
  });

  test("of our own stops the engine, where a request that asks too much ends alone", () => {
    const driver = EngineDriver.open("llama", { maxModelLen: 512, numLcmBlocks: 9 });
    const tooLong = driver.submit(new Int32Array(2000).fill(1));
    driver.run();
    expect(driver.outcome(tooLong).finish).toBe("error");
    const submit = spyOn(Scheduler.prototype, "submit").mockImplementation(() => {
      throw new InvariantError("a promise broke");
    });
    try {
      expect(() => driver.submit(Int32Array.of(1, 2, 3))).toThrow("a promise broke");
    } finally {
      submit.mockRestore();
    }
  });

  test("leaves nothing on the device when the engine is closed", () => {
    const driver = EngineDriver.open("llama");
    const { device } = driver;
    const before = device.allocations.size;
    const other = EngineDriver.open("llama");
    other.generate(loadReferenceCase("llama").prompt("c"));
    expect(device.allocations.size).toBeGreaterThan(before);
    other.engine.close();
    expect(device.allocations.size).toBe(before);
  });
});
