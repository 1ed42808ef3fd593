/**
 * One half of a disaggregated deployment under a seeded storm: handshakes, transfers that succeed, fail
 * or are aborted, and on the decode side retraction with local recovery. Everything read must be right
 * and nothing may leak or stand still.
 */
import { CapacityModel } from "../../src/scheduler/capacity-model";
import type { LoadBackOp, WriteBackOp } from "../../src/scheduler/plan";
import { Scheduler } from "../../src/scheduler/scheduler";
import { resolveSettings } from "../../src/scheduler/settings";
import { configOf, F, M, R, type Setup, W } from "../scheduler/driver";
import { ModelExecutor } from "./model-executor";
import { Random } from "./random";
import { Truth } from "./truth";

const layouts: readonly Setup["groups"][] = [
  [F(2)],
  [F(4, 2), W(6, 2, 2)],
  [F(4, 3), M(4)],
  [F(2), M(2, 2), M(4)],
  [F(4), R(4, 2, 2)],
  [F(4, 2), W(5, 4), M(2)],
];

interface Landing {
  readonly id: string;
  readonly token: number;
}

interface Computed {
  readonly planId: number;
  readonly tokens: number[][];
  readonly ids: string[];
}

export class WorkerWorld {
  readonly #random: Random;
  readonly #scheduler: Scheduler;
  readonly #executor: ModelExecutor;
  readonly #role: "prefill" | "decode";
  readonly #truths = new Map<string, Truth>();
  readonly #live = new Map<string, { handle: number; prompt: number; maxNew: number }>();
  readonly #bootstrapping = new Set<string>();
  readonly #handedOver = new Set<string>();
  readonly #landings: Landing[] = [];
  readonly #results: Computed[] = [];
  readonly #stores: WriteBackOp[] = [];
  readonly #loads: LoadBackOp[] = [];
  #numSubmitted = 0;
  #emptyRounds = 0;
  #isDraining = false;
  finished = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#role = this.#random.chance(0.4) ? "prefill" : "decode";
    const groups = this.#random.pick(layouts);
    const hasReplay = groups.some((group) => group.replayable === true);
    const setup: Setup = {
      P: 4,
      pool: 1,
      T: this.#random.pick([4, 8, 32]) + (hasReplay ? 8 : 0),
      B: this.#random.pick([1, 3, 6]),
      host: this.#random.pick([0, 0, 12, 30]),
      depth: this.#random.int(0, 1),
      role: this.#role,
      groups,
    };
    const capacity = new CapacityModel(configOf(setup));
    const least = capacity.lcmBlocksNeededFor(capacity.singleRequestBlocks(36));
    const config = configOf({ ...setup, pool: Math.ceil(least * this.#random.pick([1, 1.3, 2, 4])) });
    this.#scheduler = new Scheduler(config);
    this.#executor = new ModelExecutor(
      resolveSettings(config),
      this.#random,
      (id) => this.#truths.get(id) as Truth,
    );
  }

  step(): void {
    const what = this.#random.int(0, 9);
    if (what === 0 && !this.#isDraining && this.#live.size < 8) this.#submit();
    else if (what === 1 && !this.#isDraining && this.#live.size > 0 && this.#random.chance(0.3))
      this.#end("abort");
    else if (what === 2 && !this.#isDraining && this.#live.size > 0 && this.#random.chance(0.2)) {
      this.#end("transferFailed");
    } else if (what <= 4 && this.#bootstrapping.size > 0) this.#bootstrap();
    else if (what === 5 && this.#landings.length > 0) this.#land();
    else if (what === 6 && this.#handedOver.size > 0) this.#succeed();
    else if (what === 7 && this.#stores.length + this.#loads.length > 0) this.#acknowledge();
    else this.#plan();
    const check = this.#scheduler.startIntegrityCheck();
    while (!check.step(10_000));
  }

  /** No more arrivals: everything ends within a bound and every block comes back. */
  drain(): void {
    this.#isDraining = true;
    for (let steps = 0; this.#live.size > 0; steps++) {
      if (steps > 8000) throw new Error(`${[...this.#live.keys()]} never finish`);
      this.step();
    }
    while (this.#results.length > 0) this.#landResult();
    while (this.#stores.length + this.#loads.length > 0) this.#acknowledge();
    this.#scheduler.nextExecutionPlan();
    const { activeLcmBlocks, availableLcmBlocks, totalLcmBlocks } = this.#scheduler.gauges();
    if (activeLcmBlocks !== 0 || availableLcmBlocks !== totalLcmBlocks) throw new Error("blocks were lost");
  }

  #submit(): void {
    const id = `r${this.#numSubmitted++}`;
    const prompt = Array.from({ length: this.#random.int(1, 24) }, () => this.#random.int(1, 2));
    const maxNew = this.#random.int(1, 10);
    const declared = this.#random.chance(0.5) ? maxNew : 0;
    const [handle] = this.#scheduler.submit([
      { requestId: id, tokens: Int32Array.from(prompt), maxNewTokens: declared },
    ]);
    this.#truths.set(id, new Truth(prompt, 0));
    this.#live.set(id, { handle, prompt: prompt.length, maxNew });
    this.#bootstrapping.add(id);
  }

  #bootstrap(): void {
    const [id] = this.#bootstrapping;
    this.#bootstrapping.delete(id);
    const request = this.#live.get(id);
    if (request !== undefined) this.#scheduler.advance([{ kind: "bootstrapped", request: request.handle }]);
  }

  #end(kind: "abort" | "transferFailed"): void {
    const id = this.#random.pick([...this.#live.keys()]);
    this.#scheduler.advance([{ kind, request: this.#live.get(id)?.handle ?? 0 }]);
    this.#forget(id);
  }

  #forget(id: string): void {
    this.#live.delete(id);
    this.#bootstrapping.delete(id);
    this.#handedOver.delete(id);
  }

  /** A peer's blocks and first token arrive. */
  #land(): void {
    const { id, token } = this.#landings.shift() as Landing;
    const request = this.#live.get(id);
    if (request === undefined) return;
    this.#scheduler.advance([{ kind: "remotePrefillDone", request: request.handle, token }]);
    this.#finishDone([id]);
  }

  #succeed(): void {
    const [id] = this.#handedOver;
    const request = this.#live.get(id);
    if (request !== undefined)
      this.#scheduler.advance([{ kind: "transferSucceeded", request: request.handle }]);
    this.#forget(id);
    this.finished++;
  }

  #acknowledge(): void {
    const store = this.#stores.shift();
    if (store !== undefined) {
      this.#executor.stored(store, false);
      this.#scheduler.advance([{ kind: "writeBackDone", opId: store.opId }]);
      return;
    }
    const load = this.#loads.shift() as LoadBackOp;
    this.#scheduler.advance([{ kind: "loadBackDone", opId: load.opId, success: true }]);
  }

  #plan(): void {
    if (this.#results.length > (this.#scheduler.config.overlapScheduleDepth ?? 0)) {
      this.#landResult();
      return;
    }
    const plan = this.#scheduler.nextExecutionPlan();
    const tokens = this.#executor.run(plan, true);
    this.#stores.push(...plan.writeBacks);
    this.#loads.push(...plan.loadBacks);
    for (const row of plan.remotePrefill.rows) {
      this.#landings.push({ id: row.requestId, token: this.#executor.land(row) });
    }
    for (const row of plan.remoteDecode.rows) this.#handedOver.add(row.requestId);
    const ids = plan.forward.rows.map((row) => row.requestId);
    if (ids.length > 0) this.#results.push({ planId: plan.planId, tokens, ids });
    const outstanding =
      this.#results.length + this.#stores.length + this.#loads.length + this.#landings.length;
    const waits = outstanding + this.#handedOver.size + this.#bootstrapping.size;
    const isStalled = plan.isEmpty && waits === 0 && this.#scheduler.hasUnfinishedRequests();
    this.#emptyRounds = isStalled ? this.#emptyRounds + 1 : 0;
    if (this.#emptyRounds >= 2) throw new Error(`stalled with ${[...this.#live.keys()]}`);
    if (plan.isEmpty && this.#results.length > 0) this.#landResult();
  }

  #landResult(): void {
    const { planId, tokens, ids } = this.#results.shift() as Computed;
    const tokenCounts = Int32Array.from(tokens, (row) => row.length);
    this.#scheduler.advance([
      { kind: "forwardResult", planId, tokenCounts, tokens: Int32Array.from(tokens.flat()) },
    ]);
    if (this.#role === "decode") this.#finishDone(ids);
  }

  #finishDone(ids: readonly string[]): void {
    for (const id of ids) {
      const request = this.#live.get(id);
      if (request === undefined) continue;
      if (this.#scheduler.tokenCountOf(request.handle) - request.prompt < request.maxNew) continue;
      const kind = this.#scheduler.canFinish(request.handle) ? "finish" : "abort";
      this.#scheduler.advance([{ kind, request: request.handle }]);
      this.#forget(id);
      this.finished++;
    }
  }
}
