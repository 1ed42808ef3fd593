/** Entry of the engine's thread: loads, then steps for as long as there is work, reading its port between steps. */
import { isMainThread, type MessagePort, parentPort, receiveMessageOnPort } from "node:worker_threads";
import { idleCheckDelayMs } from "../limits";
import type { Engine } from "./engine";
import type { EngineOptions } from "./engine-options";
import { loadEngine } from "./load-engine";
import type { EngineCommand, EngineMessage } from "./protocol";

/** The first message of the thread. */
export interface WorkerStart {
  readonly options: EngineOptions;
  readonly port: MessagePort;
}

/** What the loop is told by its port between two steps. */
class Intake {
  /** Set by `drain` and `stop`. */
  isDraining = false;
  isStopped = false;
  readonly #port: MessagePort;
  readonly #engine: Engine;

  constructor(port: MessagePort, engine: Engine) {
    this.#port = port;
    this.#engine = engine;
  }

  /** Takes in all that waits; never blocks. */
  drain(): void {
    for (
      let entry = receiveMessageOnPort(this.#port);
      entry !== undefined;
      entry = receiveMessageOnPort(this.#port)
    ) {
      this.#take(entry.message as EngineCommand);
    }
  }

  /** Resolves with true when a command came, with false after `timeoutMs`. */
  wait(timeoutMs: number | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const onMessage = (message: EngineCommand) => {
        end(true);
        this.#take(message);
      };
      const end = (came: boolean) => {
        this.#port.off("message", onMessage);
        clearTimeout(timer);
        resolve(came);
      };
      if (timeoutMs !== undefined) timer = setTimeout(() => end(false), timeoutMs);
      this.#port.on("message", onMessage);
    });
  }

  #take(command: EngineCommand): void {
    if (command.kind === "drain") this.isDraining = true;
    else if (command.kind === "stop") this.isStopped = true;
    else this.#engine.handle(command);
  }
}

/** Steps while work exists; idle, it waits for a command and checks its own books meanwhile. */
async function runLoop(engine: Engine, intake: Intake): Promise<void> {
  for (;;) {
    intake.drain();
    if (intake.isStopped) return;
    if (engine.hasWork) {
      engine.step();
      continue;
    }
    if (intake.isDraining) return;
    const isBusy = await intake.wait(engine.isChecked ? undefined : idleCheckDelayMs);
    while (!isBusy && !engine.checkSlice()) {
      intake.drain();
      if (engine.hasWork || intake.isStopped || intake.isDraining) break;
    }
  }
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
