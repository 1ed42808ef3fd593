/**
 * The obvious cache: the rules of matching, admission, eviction, publication and tiers said as plainly as
 * possible, with objects, text keys and full scans. Knows nothing of how the real one is built.
 */
import type { CacheGroupSpec } from "../../src/cache/cache-group-spec";
import { type NaiveEntry, NaiveIndex } from "./naive-index";
import { isLess, type NaiveBlock, NaivePool } from "./naive-pool";

export interface NaiveTable {
  slots: (NaiveBlock | undefined)[];
  available: number;
  reclaimed: number;
}

export interface NaiveDemand {
  readonly tokens: number;
  /** -1: dense. */
  readonly first: number;
  readonly reserve: number;
}

export interface NaiveProbe {
  device: number;
  host: number;
  closed: number;
  deviceSlots: (string | undefined)[][];
  hostSlots: (string | undefined)[][];
}

export interface NaiveProgress {
  /** Content keys of the prompt's pages. */
  readonly pages: readonly string[];
  readonly from: number;
  readonly to: number;
  readonly kind: number;
  readonly stateKind: number;
  readonly boundaries: readonly number[];
  readonly streams: boolean;
  readonly computed: number;
  /** Tokens of the whole prompt. */
  readonly prompt: number;
}

export interface NaiveTransfer {
  readonly group: number;
  readonly source: NaiveBlock;
  readonly destination: NaiveBlock;
  readonly key: string;
  readonly pinned: boolean;
}

export class NaiveCache {
  readonly P: number;
  readonly specs: readonly CacheGroupSpec[];
  readonly pool: NaivePool;
  readonly hostPool: NaivePool;
  readonly index: NaiveIndex[];
  readonly hostIndex: NaiveIndex[];
  readonly hasHost: boolean;
  readonly streams: boolean;
  clock = 0;
  evictions = 0;
  pending: { group: number; key: string }[] = [];
  readonly stores = new Map<number, NaiveTransfer[]>();
  readonly loads = new Map<number, NaiveTransfer[]>();
  nextOp = 0;

  constructor(P: number, specs: readonly CacheGroupSpec[], device: number, host: number, streams: boolean) {
    this.P = P;
    this.specs = specs;
    const packings = specs.map((spec) => spec.cacheBlocksPerLcmBlock);
    this.pool = new NaivePool(device, packings);
    this.hostPool = new NaivePool(host, packings);
    this.index = specs.map(() => new NaiveIndex(this.pool));
    this.hostIndex = specs.map(() => new NaiveIndex(this.hostPool));
    this.hasHost = host > 0;
    this.streams = streams;
  }

  table(): NaiveTable {
    return { slots: [], available: 0, reclaimed: 0 };
  }

  lookback({ kind, windowTokens, blockGranularity }: CacheGroupSpec): number {
    if (kind === "full") return 0;
    return Math.ceil((kind === "state" ? 1 : windowTokens - 1) / blockGranularity);
  }

  expired({ kind, windowTokens, blockGranularity }: CacheGroupSpec, computed: number): number {
    if (kind === "full") return 0;
    const beyond = computed - (kind === "state" ? 2 : windowTokens) + 1;
    return beyond <= 0 ? 0 : Math.floor(beyond / blockGranularity);
  }

  key(spec: CacheGroupSpec, pages: readonly string[], slot: number): string {
    const r = this.P / spec.blockGranularity;
    return `${pages[Math.floor(slot / r)]}#${slot % r}`;
  }

  /** The highest boundary that all groups can resume from: tries them all, from the top. */
  #boundary(indexes: NaiveIndex[], pages: readonly string[], floor: number, top: number): number {
    for (let boundary = top; boundary > floor; boundary -= this.P) {
      if (
        this.specs.every((spec) => spec.replayable || this.#supports(spec, indexes, pages, floor, boundary))
      ) {
        return boundary;
      }
    }
    return floor;
  }

  #supports(
    spec: CacheGroupSpec,
    indexes: NaiveIndex[],
    pages: readonly string[],
    floor: number,
    boundary: number,
  ): boolean {
    const g = spec.blockGranularity;
    const needed = spec.kind === "full" ? (boundary - floor) / g : this.lookback(spec);
    const first = Math.max(floor / g, boundary / g - needed);
    for (let slot = first; slot < boundary / g; slot++) {
      if (!indexes[spec.group].entries.has(this.key(spec, pages, slot))) return false;
    }
    return true;
  }

  probe(pages: readonly string[], numPages: number): NaiveProbe {
    const top = numPages * this.P;
    const device = this.#boundary(this.index, pages, 0, top);
    const host = this.hasHost ? this.#boundary(this.hostIndex, pages, device, top) : device;
    const closed = Math.max(
      this.#closed(this.index, pages, 0, top),
      this.hasHost ? this.#closed(this.hostIndex, pages, device, top) : 0,
    );
    return {
      device,
      host,
      closed,
      deviceSlots: this.#slots(pages, 0, device),
      hostSlots: this.#slots(pages, device, host),
    };
  }

  #closed(indexes: NaiveIndex[], pages: readonly string[], floor: number, top: number): number {
    const full = this.specs.filter((spec) => spec.kind === "full");
    if (full.length === 0) return 0;
    let boundary = floor;
    while (
      boundary < top &&
      full.every((spec) => this.#supports(spec, indexes, pages, boundary, boundary + this.P))
    ) {
      boundary += this.P;
    }
    return boundary;
  }

  #slots(pages: readonly string[], floor: number, boundary: number) {
    return this.specs.map((spec) => {
      if (spec.replayable) return [];
      const g = spec.blockGranularity;
      const begin =
        spec.kind === "full" ? floor / g : Math.max(floor / g, boundary / g - this.lookback(spec));
      return Array.from({ length: (boundary - floor) / g }, (_, i) => {
        const slot = floor / g + i;
        return slot < begin ? undefined : this.key(spec, pages, slot);
      });
    });
  }

  /** Fresh blocks that a demand needs behind `claimed` slots of a hit, and how the table stands then. */
  need(spec: CacheGroupSpec, table: NaiveTable, claimed: number, { tokens, first, reserve }: NaiveDemand) {
    const g = spec.blockGranularity;
    const length = table.slots.length + claimed;
    if (first < 0) {
      const blocks = Math.max(0, Math.ceil((tokens + reserve - table.available) / g));
      return { blocks, start: length, available: table.available + blocks * g - tokens };
    }
    const end = Math.ceil((tokens + reserve) / g);
    return { blocks: end - first, start: first, available: end * g - tokens };
  }

  /** The victims that make `needs` fit, or undefined. Every trial recounts the whole pool. */
  victims(
    needs: readonly number[],
    tables: readonly NaiveTable[],
    computed: number,
  ): NaiveBlock[] | undefined {
    const gone = new Set<NaiveBlock>();
    if (this.#fits(needs, gone)) return [];
    const candidates: { block: NaiveBlock; rank: number[] }[] = [];
    this.specs.forEach((spec, group) => {
      const end = Math.min(this.expired(spec, computed), tables[group].slots.length);
      for (let slot = tables[group].reclaimed; slot < end; slot++) {
        const block = tables[group].slots[slot];
        if (block === undefined) continue;
        const cached = this.index[group].entryOf(block) !== undefined;
        if (block.owners === (cached ? 2 : 1)) candidates.push({ block, rank: this.#rank(spec, block) });
      }
      for (const { block } of this.index[group].entries.values()) {
        if (block.owners === 1) candidates.push({ block, rank: this.#rank(spec, block) });
      }
    });
    candidates.sort((a, b) => (isLess(a.rank, b.rank) ? -1 : 1));
    const chosen: NaiveBlock[] = [];
    for (const { block } of candidates) {
      if (this.#fits(needs, gone)) break;
      gone.add(block);
      chosen.push(block);
    }
    if (!this.#fits(needs, gone)) return undefined;
    for (const block of [...chosen].reverse()) {
      gone.delete(block);
      if (!this.#fits(needs, gone)) gone.add(block);
    }
    return chosen.filter((block) => gone.has(block));
  }

  #rank(spec: CacheGroupSpec, block: NaiveBlock): number[] {
    const entry = this.index[spec.group].entryOf(block);
    const place = [block.group, block.parent, block.slot];
    if (entry === undefined) return [0, 0, 0, ...place];
    if (spec.kind === "full") return [entry.epoch, 3, entry.index >= 0 ? -entry.index : 0, ...place];
    const isProbationary = entry.kind === 0 && !entry.acquired && entry.index >= 0;
    return [entry.epoch, isProbationary ? 1 : 2, isProbationary ? entry.index : 0, ...place];
  }

  #fits(needs: readonly number[], gone: ReadonlySet<NaiveBlock>): boolean {
    let empty = 0;
    const free = this.specs.map(() => 0);
    for (let parent = 1; parent < this.pool.parents.length; parent++) {
      const left = this.pool.occupants(parent).filter((block) => !gone.has(block));
      if (left.length === 0) empty++;
      else free[left[0].group] += this.specs[left[0].group].cacheBlocksPerLcmBlock - left.length;
    }
    const parents = needs.reduce(
      (sum, need, group) =>
        sum + Math.ceil(Math.max(need - free[group], 0) / this.specs[group].cacheBlocksPerLcmBlock),
      0,
    );
    return parents <= empty;
  }

  /** One transaction; undefined, with nothing changed, when it does not fit. */
  admit(
    tables: NaiveTable[],
    demands: readonly NaiveDemand[],
    progress: NaiveProgress,
    epoch: number,
    probe: NaiveProbe | undefined,
  ): { epoch: number; fresh: NaiveBlock[][]; load: number | undefined } | undefined {
    const plans = this.specs.map((spec, group) => {
      const claimed =
        probe === undefined ? 0 : probe.deviceSlots[group].length + probe.hostSlots[group].length;
      return this.need(spec, tables[group], claimed, demands[group]);
    });
    const needs = plans.map((plan, group) => {
      const loaded = probe?.hostSlots[group].filter((key) => key !== undefined).length ?? 0;
      return plan.blocks + loaded;
    });
    const hits = this.specs.map(
      (_, group) =>
        probe?.deviceSlots[group].map((key) => this.index[group].entries.get(key ?? "")?.block) ?? [],
    );
    for (const block of hits.flat()) if (block !== undefined) block.owners++;
    const victims = this.victims(needs, tables, progress.computed);
    if (victims === undefined) {
      for (const block of hits.flat()) if (block !== undefined) block.owners--;
      return undefined;
    }
    const at = epoch > 0 ? epoch : ++this.clock;
    this.#claim(tables, hits, probe, at);
    this.#evict(victims);
    this.specs.forEach((spec, group) => {
      this.publishGroup(spec, tables[group], progress, at);
      if (progress.computed >= 0) this.#reclaim(spec, tables[group], progress.computed);
    });
    this.#evict(victims);
    const transfers: NaiveTransfer[] = [];
    const fresh = this.specs.map((_, group) => {
      this.#extend(group, tables[group], probe?.hostSlots[group] ?? [], transfers);
      const { blocks, start, available } = plans[group];
      const wasEmpty = tables[group].slots.length === 0;
      while (tables[group].slots.length < start) tables[group].slots.push(undefined);
      if (wasEmpty && start > 0) tables[group].reclaimed = start;
      const taken = Array.from({ length: blocks }, () => this.#take(group, tables[group]));
      tables[group].available = available;
      return taken;
    });
    if (probe !== undefined) this.#publishLoaded(tables, probe, progress.pages, at);
    if (transfers.length === 0) return { epoch: at, fresh, load: undefined };
    this.loads.set(this.nextOp, transfers);
    return { epoch: at, fresh, load: this.nextOp++ };
  }

  /** Where blocks share parents, everything that nobody uses goes. */
  dropScattered(): void {
    if (this.specs.every((spec) => spec.cacheBlocksPerLcmBlock === 1)) return;
    for (const index of this.index) {
      const idle = [...index.entries.values()].filter((entry) => entry.block.owners === 1);
      idle.sort((a, b) => this.#leaveOrder(a, b));
      for (const entry of idle) index.evict(entry);
    }
  }

  #leaveOrder(a: NaiveEntry, b: NaiveEntry): number {
    const [rankA, rankB] = [a, b].map(({ block }) => this.#rank(this.specs[block.group], block));
    return isLess(rankA, rankB) ? -1 : 1;
  }

  #claim(
    tables: NaiveTable[],
    hits: (NaiveBlock | undefined)[][],
    probe: NaiveProbe | undefined,
    epoch: number,
  ) {
    this.specs.forEach((_, group) => {
      for (const block of hits[group]) {
        const entry = block === undefined ? undefined : this.index[group].entryOf(block);
        if (entry !== undefined) Object.assign(entry, { acquired: true, epoch });
      }
      for (const key of probe?.hostSlots[group] ?? []) {
        if (key !== undefined) this.hostIndex[group].acquire(key, epoch);
      }
      if (hits[group].length > 0) tables[group].slots = [...hits[group]];
    });
  }

  #evict(victims: readonly NaiveBlock[]): void {
    for (const block of victims) {
      const entry = this.index[block.group].entryOf(block);
      if (entry === undefined || block.owners !== 1) continue;
      this.index[block.group].evict(entry);
      this.evictions++;
    }
  }

  #take(group: number, table: NaiveTable): NaiveBlock {
    const shards = this.specs[group].shardCount;
    const loads = Array.from(
      { length: shards },
      (_, shard) =>
        table.slots.filter((block) => block !== undefined && block.slot % shards === shard).length,
    );
    const block = this.pool.acquire(group, shards > 1 ? loads : undefined);
    if (block === undefined) throw new Error("the naive pool ran out");
    table.slots.push(block);
    return block;
  }

  #reclaim(spec: CacheGroupSpec, table: NaiveTable, computed: number): void {
    const end = Math.min(this.expired(spec, computed), table.slots.length);
    for (let slot = table.reclaimed; slot < end; slot++) {
      const block = table.slots[slot];
      if (block !== undefined) this.pool.release(block);
      table.slots[slot] = undefined;
    }
    table.reclaimed = Math.max(table.reclaimed, end);
  }

  publishGroup(spec: CacheGroupSpec, table: NaiveTable, progress: NaiveProgress, epoch: number): void {
    const { from, to, kind, stateKind, boundaries, streams } = progress;
    if (spec.replayable || to <= from) return;
    const r = this.P / spec.blockGranularity;
    if (spec.kind === "full")
      this.#register(spec, table, progress.pages, from * r, to * r, kind, epoch, streams);
    else if (spec.kind === "slidingWindow") {
      const begin = Math.max(0, to * r - this.lookback(spec));
      if (to * this.P === progress.prompt) {
        const again = Math.max(0, (to - 1) * r - this.lookback(spec));
        const last = Math.min(begin, (to - 1) * r);
        const known = new Set(this.index[spec.group].entries.keys());
        this.#register(spec, table, progress.pages, again, last, kind, epoch, false);
        for (const entry of this.index[spec.group].entries.values()) {
          if (!known.has(entry.key)) entry.worthHost = false;
        }
      }
      this.#register(spec, table, progress.pages, begin, to * r, kind, epoch, true);
    } else if (stateKind > 0) {
      for (const boundary of boundaries) {
        const page = boundary / this.P;
        if (page > from && page <= to) {
          this.#register(spec, table, progress.pages, page * r - 1, page * r, stateKind, epoch, streams);
        }
      }
    }
  }

  #register(
    spec: CacheGroupSpec,
    table: NaiveTable,
    pages: readonly string[],
    begin: number,
    end: number,
    kind: number,
    epoch: number,
    streams: boolean,
  ): void {
    for (let slot = begin; slot < Math.min(end, table.slots.length); slot++) {
      const block = table.slots[slot];
      if (block === undefined) continue;
      const key = this.key(spec, pages, slot);
      const wasKnown = this.index[spec.group].entries.has(key);
      const canonical = this.index[spec.group].register(block, key, kind, epoch, slot);
      const entry = this.index[spec.group].entryOf(canonical);
      if (streams && entry !== undefined) entry.worthHost = true;
      if (canonical !== block) {
        canonical.owners++;
        table.slots[slot] = canonical;
        this.pool.release(block);
      }
      if (!wasKnown && streams && this.streams) this.pending.push({ group: spec.group, key });
    }
  }

  free(tables: NaiveTable[]): void {
    for (const table of tables) {
      for (const block of [...table.slots].reverse()) if (block !== undefined) this.pool.release(block);
      Object.assign(table, this.table());
    }
  }

  /** Destinations for what Host has of a group's hit; the transfer holds both ends. */
  #extend(
    group: number,
    table: NaiveTable,
    keys: readonly (string | undefined)[],
    transfers: NaiveTransfer[],
  ) {
    for (const key of keys) {
      if (key === undefined) {
        if (table.reclaimed === table.slots.length) table.reclaimed++;
        table.slots.push(undefined);
        continue;
      }
      const source = this.hostIndex[group].entries.get(key)?.block;
      if (source === undefined) throw new Error("a Host hit vanished");
      const destination = this.#take(group, table);
      destination.owners++;
      transfers.push({ group, source, destination, key, pinned: true });
    }
  }

  #publishLoaded(tables: NaiveTable[], probe: NaiveProbe, pages: readonly string[], epoch: number): void {
    for (let page = probe.device / this.P; page < probe.host / this.P; page++) {
      for (const spec of this.specs) {
        if (spec.replayable) continue;
        const r = this.P / spec.blockGranularity;
        this.#register(spec, tables[spec.group], pages, page * r, (page + 1) * r, 0, epoch, false);
      }
    }
  }
}
