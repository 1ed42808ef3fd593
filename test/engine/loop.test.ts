/** The engine's loop when there is nothing to step: books first, then the idle task, then rest. */
import { describe, expect, test } from "bun:test";
import { MessageChannel } from "node:worker_threads";
import type { Engine } from "../../src/engine/engine";
import { Intake, runLoop } from "../../src/engine/loop";
import type { EngineCommand } from "../../src/engine/protocol";

/** An engine that steps once a command and then has its books checked in two slices. */
class FakeEngine {
  readonly log: string[] = [];
  hasWork = false;
  isChecked = true;
  #slicesLeft = 0;

  handle(_: EngineCommand): void {
    this.hasWork = true;
  }

  step(): void {
    this.log.push("step");
    this.hasWork = false;
    this.isChecked = false;
    this.#slicesLeft = 2;
  }

  checkSlice(): boolean {
    this.log.push("check");
    this.isChecked = --this.#slicesLeft === 0;
    return this.isChecked;
  }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await Bun.sleep(5);
}

describe("an idle engine", () => {
  test("does its idle task to the end, once before the first step and once after each rest", async () => {
    const engine = new FakeEngine();
    const { port1, port2 } = new MessageChannel();
    let slicesLeft = 3;
    const idleTask = {
      slice() {
        engine.log.push("idle");
        if (--slicesLeft > 0) return false;
        slicesLeft = 2;
        return true;
      },
    };
    const intake = new Intake(port2, engine as unknown as Engine);
    const loop = runLoop(engine as unknown as Engine, intake, idleTask);
    await until(() => engine.log.length === 3);
    port1.postMessage({ kind: "abort", id: 1 });
    await until(() => engine.log.length === 8);
    await Bun.sleep(50);
    expect(engine.log).toEqual(["idle", "idle", "idle", "step", "check", "check", "idle", "idle"]);
    port1.postMessage({ kind: "stop" });
    await loop;
    port1.close();
  });
});
