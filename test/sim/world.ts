/**
 * One simulated deployment under a seeded storm: bursts of requests, late and reordered acknowledgements,
 * aborts in every state, stops, lost storage. After every step the books are recounted and, where a naive
 * twin exists, compared with it.
 */
import { InvariantError } from "../../src/assert";
import type { SchedulerEvent } from "../../src/scheduler/events";
import type { ExecutionPlan, LoadBackOp, WriteBackOp } from "../../src/scheduler/plan";
import { Scheduler } from "../../src/scheduler/scheduler";
import { resolveSettings } from "../../src/scheduler/settings";
import { ModelExecutor, storageKey } from "./model-executor";
import { PlanGuard } from "./plan-guard";
import { Random } from "./random";
import { Truth } from "./truth";
import { TwinCheck } from "./twin-check";
import { drawWorld, type WorldSetup } from "./world-setup";

interface LiveRequest {
  readonly id: string;
  readonly handle: number;
  readonly truth: Truth;
  readonly prompt: number;
  readonly maxNew: number;
}

interface PendingResult {
  readonly planId: number;
  readonly counts: Int32Array;
  readonly tokens: Int32Array;
  readonly ids: readonly string[];
  readonly guard: PlanGuard;
}

export class World {
  readonly random: Random;
  readonly setup: WorldSetup;
  readonly scheduler: Scheduler;
  readonly executor: ModelExecutor;
  readonly #twin: TwinCheck | undefined;
  readonly #live = new Map<string, LiveRequest>();
  readonly #truths = new Map<string, Truth>();
  readonly #results: PendingResult[] = [];
  readonly #stores: WriteBackOp[] = [];
  readonly #loads: LoadBackOp[] = [];
  readonly #prompts: number[][] = [];
  #numSubmitted = 0;
  #emptyRounds = 0;
  #acceptsFaults = true;
  finished = 0;

  constructor(seed: number) {
    this.random = new Random(seed);
    this.setup = drawWorld(this.random);
    const { config } = this.setup;
    this.scheduler = new Scheduler(config);
    const settings = resolveSettings(config);
    this.executor = new ModelExecutor(settings, this.random, (id) => this.#truths.get(id) as Truth);
    if (config.enableL3Storage !== true) this.#twin = new TwinCheck(settings);
  }

  get numLive(): number {
    return this.#live.size;
  }

  /** One random thing happens, then everything is checked. */
  step(): void {
    const fault = this.#acceptsFaults && this.random.int(1, 100) <= this.setup.faultRate;
    if (fault) this.#fault();
    else if (this.#acceptsFaults && this.#live.size < 12 && this.random.chance(0.25)) this.#submit();
    else if (this.#results.length > 0 && this.random.chance(0.5)) this.#landResult();
    else if (this.#stores.length + this.#loads.length > 0 && this.random.chance(0.4)) this.#acknowledge();
    else this.#plan();
    this.#recount();
  }

  /** No more arrivals and faults: everything must finish within a bound. */
  drain(): void {
    this.#acceptsFaults = false;
    let steps = 0;
    while (this.#live.size > 0) {
      if (steps++ > 4000) throw new Error(`${this.#live.size} requests never finish`);
      while (this.#results.length > 0) this.#landResult();
      while (this.#stores.length + this.#loads.length > 0) this.#acknowledge();
      this.#plan();
      this.#recount();
    }
    while (this.#stores.length + this.#loads.length > 0) this.#acknowledge();
    while (this.#results.length > 0) this.#landResult();
    this.#plan();
    while (this.#stores.length + this.#loads.length > 0) this.#acknowledge();
    const { availableLcmBlocks, totalLcmBlocks, activeLcmBlocks } = this.scheduler.gauges();
    if (availableLcmBlocks !== totalLcmBlocks || activeLcmBlocks !== 0) throw new Error("blocks were lost");
    if (!this.scheduler.clearCache()) throw new Error("an idle cache could not be cleared");
    if (this.scheduler.gauges().emptyLcmBlocks !== totalLcmBlocks)
      throw new Error("blocks were not returned");
  }

  #submit(): void {
    const { maxPrompt, maxNew } = this.setup;
    for (let burst = this.random.int(1, 3); burst > 0; burst--) {
      const id = `r${this.#numSubmitted++}`;
      const prompt = this.#prompt(this.random.int(1, maxPrompt));
      const namespace = this.random.chance(0.15) ? this.random.int(1, 2) : 0;
      const limit = this.random.int(1, maxNew);
      const declares = this.random.chance(0.5);
      const maxCached = this.random.chance(0.1) ? this.random.int(0, maxPrompt) : 0x7fff_ffff;
      const [handle] = this.scheduler.submit([
        {
          requestId: id,
          tokens: Int32Array.from(prompt),
          maxNewTokens: declares ? limit : 0,
          maxCachedPrefixTokens: maxCached,
          ...(namespace === 0 ? {} : { namespaceRoot: new Uint8Array(32).fill(namespace) }),
        },
      ]);
      this.#twin?.submit(id, prompt, declares ? limit : 0, maxCached, String(namespace));
      const truth = new Truth(prompt, namespace);
      this.#truths.set(id, truth);
      this.#live.set(id, { id, handle, truth, prompt: prompt.length, maxNew: limit });
    }
  }

  /** A prompt that often continues or repeats an earlier one. */
  #prompt(length: number): number[] {
    const earlier =
      this.#prompts.length > 0 && this.random.chance(0.75) ? this.random.pick(this.#prompts) : [];
    const shared = this.random.chance(0.5) ? earlier.length : this.random.int(0, earlier.length);
    const prompt = earlier.slice(0, Math.min(shared, length));
    while (prompt.length < length) prompt.push(this.random.int(1, 3));
    this.#prompts.push(prompt);
    if (this.#prompts.length > 12) this.#prompts.shift();
    return prompt;
  }

  #plan(): void {
    const { depth } = { depth: this.setup.config.overlapScheduleDepth ?? 0 };
    if (this.#results.length > depth) {
      this.#landResult();
      return;
    }
    const plan = this.scheduler.nextExecutionPlan();
    const canLoad = this.executor.canLoad(plan);
    const yielded = this.executor.run(plan, canLoad);
    this.#twin?.plan(plan, this.executor.mirror);
    this.#stores.push(...plan.writeBacks);
    if (canLoad) this.#loads.push(...plan.loadBacks);
    else this.#loadsFailed(plan);
    if (canLoad && plan.forward.rows.length > 0) {
      this.#results.push({
        planId: plan.planId,
        counts: Int32Array.from(yielded, (tokens) => tokens.length),
        tokens: Int32Array.from(yielded.flat()),
        ids: plan.forward.rows.map((row) => row.requestId),
        guard: new PlanGuard(plan),
      });
    }
    this.#checkProgress(plan);
  }

  /**
   * A storage read missed: forget the keys, compute nothing, and send everybody in the plan back to the
   * queue.
   */
  #loadsFailed(plan: ExecutionPlan): void {
    for (const op of plan.loadBacks) {
      const missing = Array.from({ length: op.numTransfers }, (_, i) => i).filter(
        (i) => op.prefetchFromStorage[i] === 1 && !this.executor.storage.has(storageKey(op, i)),
      );
      this.scheduler.unregisterStorageKeys({
        groups: missing.map((i) => op.groups[i]),
        hashes: missing.map((i) => hexOf(op.contentHashes, i)),
        pageOffsets: missing.map((i) => op.pageOffsets[i]),
      });
    }
    const retracted = plan.forward.rows.map(
      (row): SchedulerEvent => ({ kind: "retract", request: row.request }),
    );
    const failed = plan.loadBacks.map(
      ({ opId }): SchedulerEvent => ({ kind: "loadBackDone", opId, success: false }),
    );
    this.scheduler.advance([...retracted, ...failed]);
  }

  #landResult(): void {
    const result = this.#results.shift();
    if (result === undefined) return;
    const { planId, counts, tokens, ids, guard } = result;
    guard.check();
    this.scheduler.advance([{ kind: "forwardResult", planId, tokenCounts: counts, tokens }]);
    let at = 0;
    ids.forEach((id, i) => {
      this.#twin?.landed(id, planId, Array.from(tokens.subarray(at, at + counts[i])));
      at += counts[i];
    });
    this.#finishDone(ids);
  }

  /**
   * Requests that reached their limit, or that a stop cuts short, finish; their text must be the right one.
   */
  #finishDone(ids: readonly string[]): void {
    for (const id of ids) {
      const request = this.#live.get(id);
      if (request === undefined) continue;
      const generated = this.scheduler.tokenCountOf(request.handle) - request.prompt;
      const stops = generated > 0 && this.#acceptsFaults && this.random.chance(0.05);
      if (generated < request.maxNew && !stops) continue;
      const cut = this.random.chance(0.3) ? this.random.int(1, Math.max(1, generated)) : undefined;
      if (this.scheduler.canFinish(request.handle)) {
        this.scheduler.advance([
          { kind: "finish", request: request.handle, ...(cut === undefined ? {} : { keptTokens: cut }) },
        ]);
        this.#twin?.finish(id, cut);
      } else this.#abort(request);
      this.#live.delete(id);
      this.finished++;
    }
  }

  #abort({ handle, id }: LiveRequest): void {
    this.scheduler.advance([{ kind: "abort", request: handle }]);
    this.#twin?.abort(id);
    this.#live.delete(id);
  }

  #acknowledge(): void {
    const takesStore = this.#stores.length > 0 && (this.#loads.length === 0 || this.random.chance(0.5));
    if (takesStore) {
      const [op] = this.#stores.splice(this.random.int(0, this.#stores.length - 1), 1);
      this.executor.stored(op, this.setup.config.enableL3Storage === true && this.random.chance(0.8));
      this.scheduler.advance([{ kind: "writeBackDone", opId: op.opId }]);
      this.#twin?.stored(op.opId);
    } else {
      const [op] = this.#loads.splice(this.random.int(0, this.#loads.length - 1), 1);
      this.scheduler.advance([{ kind: "loadBackDone", opId: op.opId, success: true }]);
      this.#twin?.loaded(op.opId);
    }
  }

  #fault(): void {
    const kind = this.random.int(0, 3);
    const live = [...this.#live.values()];
    if (kind <= 1 && live.length > 0) this.#abort(this.random.pick(live));
    else if (kind === 2) {
      for (const key of [...this.executor.storage.keys()]) {
        if (this.random.chance(0.5)) this.executor.storage.delete(key);
      }
    } else if (this.setup.config.enableL3Storage === true && this.#prompts.length > 0) {
      const hashes = this.scheduler.prefixHashesForTokens(
        Int32Array.from([...this.random.pick(this.#prompts), 1]),
      );
      this.scheduler.registerStorageKeys(this.scheduler.expandPrefixKeys(hashes));
    } else if (this.#twin === undefined) this.scheduler.clearL1Cache();
    if (this.setup.config.enableKvCacheEvents === true) this.scheduler.drainKvEvents();
  }

  /** Nothing to do twice in a row, with work left and nothing out, would be a stall for ever. */
  #checkProgress(plan: ExecutionPlan): void {
    const isOutstanding = this.#results.length + this.#stores.length + this.#loads.length > 0;
    const isStalled = plan.isEmpty && this.scheduler.hasUnfinishedRequests() && !isOutstanding;
    this.#emptyRounds = isStalled ? this.#emptyRounds + 1 : 0;
    if (this.#emptyRounds >= 2) throw new Error(`stalled with ${this.#live.size} requests`);
  }

  #recount(): void {
    const check = this.scheduler.startIntegrityCheck();
    while (!check.step(10_000));
    const { totalLcmBlocks, emptyLcmBlocks, availableLcmBlocks } = this.scheduler.gauges();
    if (availableLcmBlocks < emptyLcmBlocks || availableLcmBlocks > totalLcmBlocks) {
      throw new InvariantError("the gauges do not add up");
    }
  }
}

function hexOf(words: Int32Array, i: number): string {
  return Buffer.from(words.slice(i * 8, i * 8 + 8).buffer).toString("hex");
}
