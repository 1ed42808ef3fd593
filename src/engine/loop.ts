/**
 * The engine's loop: steps while there is work, reads its port between steps; idle, it does by slices what
 * would hold a step up, and waits.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { idleCheckDelayMs } from "../limits";
import type { Engine } from "./engine";
import type { EngineCommand } from "./protocol";

/** What the loop is told by its port between two steps. */
export class Intake {
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

/** Something to do for the process while nobody waits. */
export interface IdleTask {
  /** Does a little of it; true when it is done, until the next step. */
  slice(): boolean;
}

/** Steps while work exists; idle for a while, it checks its own books and then does `idleTask`. */
export async function runLoop(engine: Engine, intake: Intake, idleTask: IdleTask): Promise<void> {
  let isTaskDone = false;
  for (;;) {
    intake.drain();
    if (intake.isStopped) return;
    if (engine.hasWork) {
      isTaskDone = false;
      engine.step();
      continue;
    }
    if (intake.isDraining) return;
    const isSettled = engine.isChecked && isTaskDone;
    const isBusy = await intake.wait(isSettled ? undefined : idleCheckDelayMs);
    while (!isBusy && !(engine.isChecked && isTaskDone)) {
      if (!engine.isChecked) engine.checkSlice();
      else isTaskDone = idleTask.slice();
      intake.drain();
      if (engine.hasWork || intake.isStopped || intake.isDraining) break;
    }
  }
}
