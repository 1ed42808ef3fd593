/**
 * The obvious scheduler of the fused role: the rules of a round said from the top, over a list of plain
 * requests that is filtered anew each time. Tables are compared with the real one's after every plan.
 */
import type { SchedulerSettings } from "../../src/scheduler/settings";
import { NaiveCache, type NaiveDemand, type NaiveProgress } from "./naive-cache";
import { chunkDemands, chunkSize } from "./naive-chunk";
import type { NaiveBlock } from "./naive-pool";
import { type NaiveRequest, type NaiveState, newRequest } from "./naive-request";
import { startStores } from "./naive-tiers";

export type { NaiveRequest };

export interface NaiveRow {
  readonly id: string;
  readonly prefill: boolean;
  readonly begin: number;
  readonly size: number;
  readonly replay: number;
  readonly request: NaiveRequest;
}

export interface NaivePlan {
  prefills: NaiveRow[];
  decodes: NaiveRow[];
  zero: number[][];
  stores: number[];
  loads: number[];
}

type Outcome = "scheduled" | "short" | "skipped";

export class NaiveScheduler {
  readonly s: SchedulerSettings;
  readonly cache: NaiveCache;
  requests: NaiveRequest[] = [];
  freeSlots: number[];
  startedStores: number[] = [];
  #clock = 0;
  #plan: NaivePlan = { prefills: [], decodes: [], zero: [], stores: [], loads: [] };
  #budget = 0;
  #blocker: NaiveRequest | undefined;

  constructor(settings: SchedulerSettings) {
    this.s = settings;
    const { prefixGranularity, specs, numDeviceLcmBlocks, numHostLcmBlocks, streamsDeviceToHost } = settings;
    this.cache = new NaiveCache(
      prefixGranularity,
      specs,
      numDeviceLcmBlocks,
      numHostLcmBlocks,
      streamsDeviceToHost,
    );
    this.freeSlots = Array.from({ length: settings.maxBatchSize }, (_, i) => i + 1);
  }

  submit(id: string, tokens: readonly number[], maxNew: number, maxCached: number, namespace: string): void {
    const tables = this.s.specs.map(() => this.cache.table());
    this.requests.push(newRequest(id, namespace, tokens, maxNew, maxCached, tables));
  }

  plan(): NaivePlan {
    this.#plan = { prefills: [], decodes: [], zero: this.s.specs.map(() => []), stores: [], loads: [] };
    this.#plan.stores.push(...this.startedStores);
    this.startedStores = [];
    this.#budget = this.s.maxScheduledTokens;
    this.#blocker = undefined;
    const readmission = this.#readmission();
    if (this.s.mixesPrefillAndDecode) {
      const expects = readmission !== undefined || this.#some("prefilling") || this.#newPrompts().length > 0;
      this.#decodes(expects ? this.#minChunk() : 0);
      this.#prefills(readmission);
    } else {
      this.#prefills(readmission);
      if (this.#plan.prefills.length === 0) this.#decodes(0);
    }
    if (this.#plan.prefills.length === 0 && this.#blocker !== undefined) this.#retraction(this.#blocker);
    const hasRows = this.#plan.prefills.length + this.#plan.decodes.length > 0;
    if (this.s.mixesPrefillAndDecode && !hasRows) {
      this.#decodes(0);
      if (this.#plan.decodes.length === 0 && this.#blocker !== undefined) this.#retraction(this.#blocker);
    }
    if (this.s.streamsDeviceToHost) this.#pushStore(startStores(this.cache, true));
    return this.#plan;
  }

  computed(r: NaiveRequest): number {
    return r.state === "decoding" ? r.tokens.length - 1 : r.end;
  }

  finish(r: NaiveRequest, kept?: number): void {
    const { P } = this.cache;
    if (kept !== undefined) {
      const least = Math.max(r.prompt + kept, r.known * P, r.prefill);
      r.tokens = r.tokens.slice(0, Math.max(least, 0));
    }
    if (r.state === "prefillDone" || r.state === "decoding") {
      const to = Math.floor((r.tokens.length - 1) / P);
      if (to > r.known) {
        this.#publish(r, {
          ...this.#progress(r, r.tokens.length - 1),
          to,
          kind: 1,
          stateKind: 1,
          streams: false,
        });
        r.known = to;
      }
      if (this.s.streamsDeviceToHost) {
        this.#queueChain(r, r.prefill);
        const op = startStores(this.cache, true);
        if (op !== undefined) this.startedStores.push(op);
      }
    }
    this.drop(r);
  }

  drop(r: NaiveRequest): void {
    this.#release(r);
    this.requests = this.requests.filter((other) => other !== r);
  }

  /** A text for each page that names its whole prefix. */
  pages(r: NaiveRequest): string[] {
    const { P } = this.cache;
    return Array.from({ length: Math.floor(r.tokens.length / P) }, (_, page) => {
      return `${r.namespace}|${r.tokens.slice(0, (page + 1) * P).join(",")}`;
    });
  }

  #holds(r: NaiveRequest): boolean {
    return r.state !== "submitted" && r.state !== "retracted";
  }

  #some(state: NaiveState): boolean {
    return this.requests.some((r) => r.state === state);
  }

  #newPrompts(): NaiveRequest[] {
    return this.requests.filter(
      (r) => r.state === "submitted" || (r.state === "retracted" && !r.recoverable),
    );
  }

  #decodable(): NaiveRequest[] {
    return this.requests.filter((r) => r.state === "prefillDone" || r.state === "decoding");
  }

  #readmission(): NaiveRequest | undefined {
    const waiting = this.requests.filter((r) => r.state === "retracted" && r.recoverable);
    waiting.sort((a, b) => Number(b.resumes) - Number(a.resumes) || a.retractedAt - b.retractedAt);
    return waiting[0];
  }

  #isFull(): boolean {
    return this.#budget <= 0 || this.#plan.prefills.length + this.#plan.decodes.length >= this.s.maxBatchSize;
  }

  #minChunk(): number {
    const { prefixGranularity: P, replayWindowTokens: RW, hasStateGroup } = this.s;
    return Math.max(hasStateGroup ? P : 0, RW > 0 ? RW + Math.max(RW, P) : 0);
  }

  #prefills(readmission: NaiveRequest | undefined): void {
    let sealed = false;
    if (readmission !== undefined && !this.#isFull()) {
      const outcome = this.#tryChunk(readmission);
      if (outcome === "scheduled" && readmission.state === "prefilling") return;
      sealed = outcome === "short";
    }
    for (const r of this.requests.filter((other) => other.state === "prefilling")) {
      if (r === readmission) continue;
      if (this.#isFull()) return;
      const outcome = this.#tryChunk(r);
      if (outcome === "short") {
        this.#blocker ??= r;
        return;
      }
      if (outcome === "scheduled" && this.#isPrefilling(r)) return;
    }
    if (sealed) return;
    for (const r of this.#newPrompts()) {
      if (this.#isFull()) return;
      const outcome = this.#tryChunk(r);
      if (outcome === "short") this.#blocker ??= r;
      if (outcome === "scheduled" && this.#isPrefilling(r)) return;
    }
  }

  #isPrefilling(r: NaiveRequest): boolean {
    return r.state === "prefilling";
  }

  #decodes(keptBack: number): void {
    for (const r of this.#decodable()) {
      if (this.#isFull() || this.#budget < keptBack + this.s.decodeInputTokens) return;
      if (this.#decode(r) === "scheduled") this.#budget -= this.s.decodeInputTokens;
      else this.#blocker ??= r;
    }
  }

  /** With its hit, and without it when nobody else could be in the way. */
  #tryChunk(r: NaiveRequest): Outcome {
    const outcome = this.#chunk(r, true);
    return outcome === "short" && !this.requests.some((other) => this.#holds(other))
      ? this.#chunk(r, false)
      : outcome;
  }

  /** A first or a later chunk. */
  #chunk(r: NaiveRequest, mayHit: boolean): Outcome {
    const { prefixGranularity: P, replayWindowTokens: RW, disablePrefixCache, prefixReplayTokens } = this.s;
    const isFirst = !this.#holds(r);
    if (isFirst && this.freeSlots.length === 0) return "skipped";
    let probe: ReturnType<NaiveCache["probe"]> | undefined;
    if (isFirst) {
      const isBack = r.state === "retracted";
      const bound = isBack ? Math.max(r.maxCached, r.landed) : r.maxCached;
      const most = Math.min(r.prefill - Math.max(prefixReplayTokens, 1), bound);
      const isOff = !mayHit || (disablePrefixCache && !isBack);
      probe = this.cache.probe(this.pages(r), isOff ? 0 : Math.floor(Math.max(0, most) / P));
    }
    const begin = probe?.host ?? r.end;
    const promotion = probe === undefined ? r.promotion : probe.closed > probe.host ? probe.closed : 0;
    const size = chunkSize(
      this.s,
      this.#budget,
      begin,
      isFirst,
      r.prefill - begin,
      promotion > begin ? promotion : 0,
    );
    if (size === 0) return "skipped";
    const end = begin + size;
    const headroom = isFirst ? this.#headroom(r) : 0;
    const demands = chunkDemands(
      this.s,
      begin,
      end,
      r.prefill,
      headroom > 0 ? r.prefill - end + headroom : 0,
      probe?.host,
    );
    const progress = isFirst ? this.#nothing(r) : this.#progress(r, begin);
    const admitted = this.cache.admit(r.tables, demands, progress, isFirst ? 0 : r.epoch, probe);
    if (admitted === undefined) return "short";
    if (isFirst) {
      r.slot = this.freeSlots.shift() ?? 0;
      Object.assign(r, { epoch: admitted.epoch, known: begin / P, boundaries: [], inFlight: 0 });
      r.promotion = promotion;
    } else this.#settle(r, progress);
    r.begin = begin;
    r.end = end;
    this.#record(r);
    r.state = end === r.prefill ? "prefillDone" : "prefilling";
    r.reserve = this.s.decodeInputTokens;
    const replay = isFirst ? Math.min(RW, begin) : 0;
    this.#plan.prefills.push({ id: r.id, prefill: true, begin, size, replay, request: r });
    r.inFlight++;
    this.#budget -= size + replay;
    this.#zero(admitted.fresh);
    if (admitted.load !== undefined) this.#plan.loads.push(admitted.load);
    return "scheduled";
  }

  #decode(r: NaiveRequest): Outcome {
    const computed = this.computed(r);
    const isFirst = r.state === "prefillDone";
    const progress = this.#progress(r, computed, isFirst && this.s.streamsDeviceToHost);
    const needsNothing =
      progress.to <= r.known &&
      this.s.specs.every((spec, group) => {
        const table = r.tables[group];
        const expired = table.slots.slice(0, this.cache.expired(spec, computed));
        return table.available >= r.reserve && expired.every((block) => block === undefined);
      });
    if (needsNothing) for (const table of r.tables) table.available -= r.reserve;
    else {
      const demands = this.s.specs.map((): NaiveDemand => ({ tokens: r.reserve, first: -1, reserve: 0 }));
      const admitted = this.cache.admit(r.tables, demands, progress, r.epoch, undefined);
      if (admitted === undefined) return "short";
      this.#settle(r, progress);
      this.#zero(admitted.fresh);
    }
    const begin = isFirst ? computed : computed + r.inFlight;
    const size = this.s.decodeInputTokens;
    this.#plan.decodes.push({ id: r.id, prefill: false, begin, size, replay: 0, request: r });
    r.inFlight++;
    r.reserve = size;
    r.state = "decoding";
    return "scheduled";
  }

  #nothing(r: NaiveRequest): NaiveProgress {
    const none = {
      from: 0,
      to: 0,
      kind: 0,
      stateKind: 0,
      boundaries: [],
      streams: false,
      computed: -1,
      prompt: r.prefill,
    };
    return { pages: this.pages(r), ...none };
  }

  #progress(
    r: NaiveRequest,
    at: number,
    streams = this.s.streamsDeviceToHost,
    size = r.prefill,
  ): NaiveProgress {
    const { P } = this.cache;
    const to = Math.floor(at / P);
    const kind = r.promotion > 0 && at === r.promotion ? 2 : at === r.prefill ? 1 : 0;
    const ends = [Math.floor((size - 1) / P) * P, Math.floor(size / P) * P].filter((end) => end > 0);
    const covers = r.boundaries.some((b) => b / P > r.known && b / P <= to && ends.includes(b));
    return {
      pages: this.pages(r),
      from: r.known,
      to,
      kind,
      stateKind: kind === 0 && covers ? 1 : kind,
      boundaries: r.boundaries,
      streams,
      computed: at,
      prompt: r.prefill,
    };
  }

  #settle(r: NaiveRequest, { to, computed }: NaiveProgress): void {
    if (to <= r.known) return;
    r.known = to;
    if (computed >= r.promotion) r.promotion = 0;
    r.boundaries = r.boundaries.filter((b) => b / this.cache.P > to);
  }

  #record(r: NaiveRequest): void {
    if (!this.s.hasStateGroup) return;
    const { P } = this.cache;
    const m = Math.floor((r.end === r.prefill ? r.end - 1 : r.end) / P) * P;
    for (const b of [m > r.begin && m < r.end ? m : 0, r.end % P === 0 ? r.end : 0]) {
      if (b > 0 && b / P > r.known && b > (r.boundaries.at(-1) ?? 0)) r.boundaries.push(b);
    }
  }

  #headroom(r: NaiveRequest): number {
    if (r.maxNew === 0) return 0;
    const left = Math.max(0, r.maxNew - Math.max(0, r.tokens.length - r.prompt));
    return Math.min(left, 4096 * (1 + r.retractions));
  }

  #covered(r: NaiveRequest): boolean {
    return r.maxNew > 0 && 4096 * (1 + r.retractions) >= Math.max(0, r.maxNew - (r.prefill - r.prompt));
  }

  #retraction(first: NaiveRequest): void {
    const isPinned = [...this.cache.stores.values()].some((store) =>
      store.some((transfer) => transfer.pinned),
    );
    if (isPinned || this.cache.loads.size > 0) return;
    let blocker = first;
    for (;;) {
      const ordinary = this.#victim(false);
      const repeats = ordinary === undefined && this.#plan.prefills.length + this.#plan.decodes.length === 0;
      const victim = repeats ? this.#victim(true) : ordinary;
      if (victim === undefined || victim.inFlight > 0) return;
      const wasIncomplete = victim.state === "prefilling";
      this.retract(victim, this.s.hasHostCache, true);
      if (blocker === victim && !this.requests.some((r) => this.#holds(r))) this.cache.dropScattered();
      const hasRows = this.#plan.prefills.length + this.#plan.decodes.length > 0;
      if (repeats || (wasIncomplete && !hasRows)) {
        this.#decodes(0);
        if (this.#plan.decodes.length > 0 && !this.s.mixesPrefillAndDecode) return;
        if (this.#plan.decodes.length === 0) {
          const residents = this.requests.filter((r) => r.state === "prefilling");
          if (residents.some((r) => this.#tryChunk(r) === "scheduled")) return;
        }
      }
      if (blocker === victim) {
        const other = this.#newPrompts().find((r) => r !== victim);
        if (other === undefined) return;
        blocker = other;
      }
      if (this.#plan.decodes.some((row) => row.request === blocker)) return;
      const isDecode = blocker.state === "prefillDone" || blocker.state === "decoding";
      if (this.#isFull()) return;
      if (!isDecode && this.#plan.decodes.length > 0 && !this.s.mixesPrefillAndDecode) return;
      const outcome = isDecode ? this.#decode(blocker) : this.#tryChunk(blocker);
      if (outcome === "scheduled" && isDecode) this.#budget -= this.s.decodeInputTokens;
      if (outcome !== "short") return;
    }
  }

  #victim(withCovered: boolean): NaiveRequest | undefined {
    const may = (r: NaiveRequest) => withCovered || !this.#covered(r);
    const incomplete = this.requests.filter((r) => r.state === "prefilling" && may(r));
    incomplete.sort((a, b) => b.tokens.length - a.tokens.length);
    if (incomplete.length > 0) return incomplete[0];
    const decoders = this.#decodable().filter(may);
    decoders.sort(
      (a, b) =>
        this.#releasable(b) - this.#releasable(a) ||
        a.tokens.length - b.tokens.length ||
        (a.id < b.id ? -1 : 1),
    );
    return decoders[0];
  }

  #releasable(r: NaiveRequest): number {
    const own = new Set(r.tables.flatMap((table) => table.slots));
    return this.cache.pool.parents.filter((parent, id) => {
      const occupants = this.cache.pool.occupants(id);
      return (
        occupants.length > 0 &&
        occupants.every((block) => {
          const isCached = this.cache.index[parent.group].entryOf(block) !== undefined;
          return own.has(block) && block.owners === (isCached ? 2 : 1);
        })
      );
    }).length;
  }

  retract(r: NaiveRequest, recoverable: boolean, isForCapacity: boolean): void {
    const computed = this.computed(r);
    if (isForCapacity) r.retractions++;
    if (isForCapacity && this.s.hasHostCache) {
      const progress = this.#progress(r, computed, false, computed);
      if (progress.to > r.known) {
        this.#publish(r, progress);
        this.#settle(r, progress);
      }
      this.#queueChain(r, computed);
      this.#pushStore(startStores(this.cache, false));
    }
    r.landed = r.state === "decoding" ? r.tokens.length - 1 : r.inFlight === 0 ? r.end : r.begin;
    this.#release(r);
    r.state = "retracted";
    r.recoverable = recoverable;
    r.prefill = r.tokens.length;
    r.resumes = r.tokens.length > r.prompt;
    r.retractedAt = ++this.#clock;
  }

  #release(r: NaiveRequest): void {
    if (!this.#holds(r)) return;
    this.cache.free(r.tables);
    this.freeSlots.push(r.slot);
    Object.assign(r, { slot: 0, inFlight: 0, promotion: 0, boundaries: [], known: 0, epoch: 0 });
  }

  #publish(r: NaiveRequest, progress: NaiveProgress): void {
    for (const spec of this.s.specs) this.cache.publishGroup(spec, r.tables[spec.group], progress, r.epoch);
  }

  /**
   * History of all known pages, and of state the newest snapshot and the one the same prompt resumes from.
   */
  #queueChain(r: NaiveRequest, size: number): void {
    const { P } = this.cache;
    const pages = this.pages(r);
    for (const spec of this.s.specs) {
      if (spec.replayable) continue;
      const slots = P / spec.blockGranularity;
      const { entries } = this.cache.index[spec.group];
      const queue = (key: string) =>
        entries.get(key)?.worthHost === true && this.cache.pending.push({ group: spec.group, key });
      if (spec.kind !== "state") {
        for (let slot = 0; slot < r.known * slots; slot++) queue(this.cache.key(spec, pages, slot));
        continue;
      }
      const at = (page: number) => (page > 0 ? this.cache.key(spec, pages, page * slots - 1) : "");
      let newest = Math.min(Math.floor(size / P), r.known);
      while (newest > 0 && !entries.has(at(newest))) newest--;
      if (newest > 0) queue(at(newest));
      const repeat = Math.floor((size - 1) / P);
      if (repeat < newest) queue(at(repeat));
    }
  }

  #zero(fresh: readonly (readonly NaiveBlock[])[]): void {
    for (const [group, blocks] of fresh.entries()) {
      for (const block of blocks) this.#plan.zero[group].push(block.id);
    }
  }

  #pushStore(op: number | undefined): void {
    if (op !== undefined) this.#plan.stores.push(op);
  }
}
