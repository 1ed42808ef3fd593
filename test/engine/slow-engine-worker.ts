/**
 * A Worker with the real loop, engine and scheduler over a fake kernel that takes five milliseconds a step.
 */
import { type MessagePort, parentPort } from "node:worker_threads";
import { ChoiceTable } from "../../src/engine/choice-table";
import { Engine } from "../../src/engine/engine";
import { Intake, runLoop } from "../../src/engine/loop";
import type { EngineMessage } from "../../src/engine/protocol";
import type { Executor, StepResult } from "../../src/executor/model-executor";
import type { ExecutionPlan } from "../../src/scheduler/plan";
import { Scheduler } from "../../src/scheduler/scheduler";

export const kernelMs = 5;

class SlowExecutor implements Executor {
  #plan: ExecutionPlan | undefined;

  submit(plan: ExecutionPlan): void {
    this.#plan = plan;
  }

  collect(): StepResult {
    const until = performance.now() + kernelMs;
    while (performance.now() < until);
    const rows = this.#plan?.forward.rows ?? [];
    const tokenCounts = Int32Array.from(rows, (row) => (row.isPrefill && !row.completesPrompt ? 0 : 1));
    return {
      planId: this.#plan?.planId ?? 0,
      tokenCounts,
      tokens: new Int32Array(tokenCounts.reduce((sum, count) => sum + count, 0)).fill(7),
      logprobs: new Map(),
      promptLogprobs: new Map(),
    };
  }
}

parentPort?.once("message", ({ port }: { port: MessagePort }) => {
  const post = (message: EngineMessage) => port.postMessage(message);
  const limits = {
    vocabSize: 100,
    maxModelLen: 4096,
    prefixGranularity: 64,
    numLcmBlocks: 1000,
    maxNumSeqs: 8,
  };
  const engine = new Engine({
    scheduler: new Scheduler({
      prefixGranularity: 64,
      numDeviceLcmBlocks: 1000,
      cacheGroups: [{ groupId: "full_attention", blockGranularity: 64 }],
      maxScheduledTokens: 512,
      maxBatchSize: 8,
    }),
    executor: new SlowExecutor(),
    choices: new ChoiceTable([], () => 1),
    overlapDepth: 0,
    limits,
    report: [],
    clock: () => performance.now(),
    post,
  });
  post({ kind: "ready", limits, report: [] });
  void runLoop(engine, new Intake(port, engine), { slice: () => true }).then(() => post({ kind: "stopped" }));
});
