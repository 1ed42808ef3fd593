/**
 * Entry of the engine's thread: loads, then steps for as
 * long as there is work, reading its port between steps.
 */
import { isMainThread, type MessagePort, parentPort } from "node:worker_threads";
import type { EngineOptions } from "./engine-options";
import { loadEngine } from "./load-engine";
import { Intake, runLoop } from "./loop";
import type { EngineMessage } from "./protocol";

/** The first message of the thread. */
export interface WorkerStart {
  readonly options: EngineOptions;
  readonly port: MessagePort;
}

async function main({ options, port }: WorkerStart): Promise<void> {
  const post = (message: EngineMessage) => port.postMessage(message);
  try {
    const random = new Uint32Array(1);
    const engine = loadEngine(
      options,
      {
        post,
        clock: () => performance.now(),
        randomUint32: () => crypto.getRandomValues(random)[0] as number,
      },
      (stage, fraction) => post({ kind: "progress", stage, fraction }),
    );
    post({ kind: "ready", limits: engine.limits, report: engine.report });
    await runLoop(engine, new Intake(port, engine));
    post({ kind: "stopped" });
  } catch (error) {
    post({ kind: "stopped", error: describeFailure(error) });
  }
}

function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A caller's mistake is one sentence; our own needs the place.
  return error.name === "InvariantError" ? `${error.message}\n${error.stack ?? ""}` : error.message;
}

if (!isMainThread) {
  parentPort?.once("message", (start: WorkerStart) => void main(start));
}
