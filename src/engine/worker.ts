/**
 * Entry of the engine's thread: loads, then steps for as
 * long as there is work, reading its port between steps.
 */
import { isMainThread, type MessagePort, parentPort } from "node:worker_threads";
import type { Engine } from "./engine";
import type { EngineOptions } from "./engine-options";
import { IdleMemory } from "./idle-memory";
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
  const random = new Uint32Array(1);
  let engine: Engine | undefined;
  try {
    engine = loadEngine(
      options,
      {
        post,
        clock: () => performance.now(),
        randomUint32: () => crypto.getRandomValues(random)[0] as number,
      },
      (stage, fraction) => post({ kind: "progress", stage, fraction }),
    );
    post({ kind: "ready", limits: engine.limits, report: engine.report });
    await runLoop(engine, new Intake(port, engine), new IdleMemory());
    post({ kind: "stopped" });
  } catch (error) {
    post({ kind: "stopped", ...describeFailure(error, engine) });
  }
}

/**
 * A sentence for a fault that has a name; for anything else also where it happened and how the engine stood.
 */
export function describeFailure(
  error: unknown,
  engine: Pick<Engine, "dumpState"> | undefined,
): { readonly error: string; readonly dump?: string } {
  if (!(error instanceof Error)) return { error: String(error) };
  if (engine === undefined) return { error: error.message };
  return { error: error.message, dump: `${error.stack ?? error.message}\n${engine.dumpState()}\n` };
}

if (!isMainThread) {
  parentPort?.once("message", (start: WorkerStart) => void main(start));
}
