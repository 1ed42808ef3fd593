/**
 * Carries plans out on a memory that remembers, for every row and snapshot, which text it was computed from.
 * Reading a row of any other text is an error, whoever wrote it: this is how a wrong reuse shows.
 */

import type { ExecutionPlan, ForwardRow, LoadBackOp, TransferOp } from "../../src/scheduler/plan";
import type { SchedulerSettings } from "../../src/scheduler/settings";
import { TableMirror } from "../scheduler/table-mirror";
import { mix, type Random } from "./random";
import type { Truth } from "./truth";

/** The rows of one block, by offset; a snapshot is row 0. */
type Content = number[];

const stale = -1;

export class ModelExecutor {
  readonly #settings: SchedulerSettings;
  readonly #random: Random;
  readonly mirror: TableMirror;
  readonly #device: Map<number, Content>[];
  readonly #host: Map<number, Content>[];
  readonly storage = new Map<string, Content>();
  /** Where each request's next decode step reads its input. */
  readonly #positions = new Map<string, number>();
  readonly #truthOf: (id: string) => Truth;
  #garbage = 0;

  constructor(settings: SchedulerSettings, random: Random, truthOf: (id: string) => Truth) {
    this.#settings = settings;
    this.#random = random;
    this.#truthOf = truthOf;
    this.mirror = new TableMirror(settings.specs.length);
    this.#device = settings.specs.map(() => new Map());
    this.#host = settings.specs.map(() => new Map());
  }

  /** True when everything that the plan's loads need is there. */
  canLoad(plan: ExecutionPlan): boolean {
    return plan.loadBacks.every((op) =>
      Array.from({ length: op.numTransfers }, (_, i) => i).every(
        (i) => op.prefetchFromStorage[i] === 0 || this.storage.has(storageKey(op, i)),
      ),
    );
  }

  /** Copies, clears, loads and computes. Returns the tokens that each row yields. */
  run(plan: ExecutionPlan, loadsSucceed: boolean): number[][] {
    for (const op of plan.writeBacks) if (!op.sourcePinned) this.#store(op);
    plan.blocksToZero.forEach(({ ids, length }, group) => {
      for (const id of ids.subarray(0, length)) this.#device[group].set(id, []);
    });
    for (const op of plan.loadBacks) this.#load(op, loadsSucceed);
    this.mirror.apply(plan);
    this.mirror.expectAgrees(plan);
    if (!loadsSucceed) return [];
    return plan.forward.rows.map((row) => this.#forward(row));
  }

  /** The bytes of a store arrive; a pinned source is read as late as that. */
  stored(op: TransferOp & { sourcePinned: boolean }, alsoStorage: boolean): void {
    if (op.sourcePinned) this.#store(op);
    for (let i = 0; alsoStorage && i < op.numTransfers; i++) {
      const content = this.#host[op.groups[i]].get(op.destinations[i]);
      if (content !== undefined) this.storage.set(storageKey(op, i), [...content]);
    }
  }

  /** What a peer computed arrives in the blocks that were made ready for it. Returns the first token. */
  land(row: ForwardRow): number {
    const truth = this.#truthOf(row.requestId);
    const end = row.begin + row.size;
    this.#settings.specs.forEach((spec, group) => {
      const table = this.mirror.tableOf(group, row.slot);
      const content = (position: number) =>
        this.#device[group].get(table[Math.floor(position / spec.blockGranularity)]);
      if (spec.kind === "state") {
        const snapshot = content(end - 1);
        if (snapshot !== undefined) snapshot[0] = truth.hash(end);
        return;
      }
      const from = spec.replayable ? 0 : row.begin;
      for (let q = from; q < end; q++) {
        const rows = content(q);
        if (rows !== undefined) rows[q % spec.blockGranularity] = truth.hash(q + 1);
      }
    });
    this.#positions.set(row.requestId, end);
    return truth.token(end);
  }

  #store(op: TransferOp): void {
    for (let i = 0; i < op.numTransfers; i++) {
      const content = this.#device[op.groups[i]].get(op.sources[i]) ?? [];
      this.#host[op.groups[i]].set(op.destinations[i], [...content]);
    }
  }

  /** What is on Host is copied even when storage fails: other requests may have hit it already. */
  #load(op: LoadBackOp, storageSucceeds: boolean): void {
    for (let i = 0; i < op.numTransfers; i++) {
      if (op.prefetchFromStorage[i] === 1 && !storageSucceeds) continue;
      const host = this.#host[op.groups[i]];
      if (op.prefetchFromStorage[i] === 1)
        host.set(op.sources[i], [...(this.storage.get(storageKey(op, i)) ?? [])]);
      this.#device[op.groups[i]].set(op.destinations[i], [...(host.get(op.sources[i]) ?? [])]);
    }
  }

  #forward(row: ForwardRow): number[] {
    const truth = this.#truthOf(row.requestId);
    if (row.isPrefill) {
      for (let q = row.begin - row.replay; q < row.begin + row.size; q++) {
        if (row.tokens[q] !== truth.token(q))
          throw new Error(`${row.requestId} is fed another token at ${q}`);
      }
      this.#compute(row, truth, row.begin, row.begin + row.size, row.begin + row.size);
      this.#positions.set(row.requestId, row.begin + row.size);
      return row.completesPrompt ? [truth.token(row.begin + row.size)] : [];
    }
    const position = this.#positions.get(row.requestId) ?? row.begin;
    if (row.size === 1 && position !== row.begin)
      throw new Error(`${row.requestId} decodes at ${row.begin}, not ${position}`);
    const accepted = this.#random.int(1, row.size);
    this.#compute(row, truth, position, position + row.size, position + accepted);
    this.#positions.set(row.requestId, position + accepted);
    return Array.from({ length: accepted }, (_, i) => truth.token(position + 1 + i));
  }

  /** Rows [begin, end) are computed, those behind `right` from drafts that turned out wrong. */
  #compute(row: ForwardRow, truth: Truth, begin: number, end: number, right: number): void {
    this.#settings.specs.forEach((spec, group) => {
      const table = this.mirror.tableOf(group, row.slot);
      const block = (position: number) => table[Math.floor(position / spec.blockGranularity)] ?? 0;
      if (spec.kind === "state") {
        if (begin > 0) this.#expect(row, group, block(begin - 1), 0, truth.hash(begin), begin);
        if (row.internalStateBoundary > 0) {
          const boundary = row.internalStateBoundary;
          this.#write(row, group, block(boundary - 1), 0, truth.hash(boundary));
        }
        this.#write(row, group, block(right - 1), 0, truth.hash(right));
        return;
      }
      const from = spec.kind === "full" ? 0 : Math.max(0, begin - spec.windowTokens + 1);
      const writeFrom = spec.replayable ? begin - row.replay : begin;
      for (let q = writeFrom; q < end; q++) {
        const value = q < right ? truth.hash(q + 1) : mix(++this.#garbage, 999);
        this.#write(row, group, block(q), q % spec.blockGranularity, value);
      }
      for (let q = from; q < begin; q++) {
        this.#expect(row, group, block(q), q % spec.blockGranularity, truth.hash(q + 1), q);
      }
    });
  }

  #expect(
    row: ForwardRow,
    group: number,
    block: number,
    offset: number,
    value: number,
    position: number,
  ): void {
    const found = block === 0 ? stale : (this.#device[group].get(block)?.[offset] ?? stale);
    if (found === value) return;
    throw new Error(
      `${row.requestId} reads position ${position} of group ${group} from block ${block}: ` +
        `${found === stale ? "nothing there" : "another text"}`,
    );
  }

  #write(row: ForwardRow, group: number, block: number, offset: number, value: number): void {
    if (block === 0) throw new Error(`${row.requestId} writes into a hole of group ${group}`);
    const content = this.#device[group].get(block);
    if (content === undefined)
      throw new Error(`block ${block} of group ${group} was never cleared or loaded`);
    content[offset] = value;
  }
}

/** What storage files a transfer's block under. */
export function storageKey(op: TransferOp, i: number): string {
  return `${op.groups[i]} ${op.pageOffsets[i]} ${op.contentHashes.subarray(i * 8, i * 8 + 8).join()}`;
}
