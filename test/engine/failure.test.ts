/** What a broken engine tells before it stops. */
import { describe, expect, test } from "bun:test";
import { InvariantError } from "../../src/assert";
import { describeFailure } from "../../src/engine/worker";
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
});
