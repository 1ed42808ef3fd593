/**
 * The reusable storage behind `ForwardRow` and `ForwardBatch`.
 * Filled while a round is decided, read by everybody else.
 */
import type { BlockTable } from "../cache/core/block-table";
import { Int32List } from "../cache/core/int32-list";
import type { ForwardBatch, ForwardRow, GroupTableChanges } from "./plan";
import type { Request } from "./request";

const noTokens = new Int32Array(0);
const noCandidates: readonly number[] = [];

export class RowBuffer implements ForwardRow {
  source: Request | undefined;
  /** Which admission of the request the row belongs to. */
  admissionSerial = 0;
  request = 0;
  requestId = "";
  slot = 0;
  isPrefill = false;
  isFirstChunk = false;
  isFirstDecode = false;
  begin = 0;
  size = 0;
  replay = 0;
  inputLength = 0;
  tokens: Int32Array = noTokens;
  prefillLength = 0;
  completesPrompt = false;
  internalStateBoundary = 0;
  decodeInputId = -1;
  specCandidates: readonly number[] = noCandidates;
  resultsInFlight = 0;
  deviceHitTokens = 0;
  hostHitTokens = 0;
  storageHitTokens = 0;

  /** Starts a row of this request with everything that prefill and decode have in common. */
  start(source: Request): this {
    this.source = source;
    this.admissionSerial = source.admissionSerial;
    this.request = source.handle;
    this.requestId = source.id;
    this.slot = source.slot;
    this.tokens = source.tokens.window;
    this.prefillLength = source.prefillTokens;
    this.resultsInFlight = source.resultsInFlight;
    this.isFirstChunk = false;
    this.isFirstDecode = false;
    this.completesPrompt = false;
    this.internalStateBoundary = 0;
    this.decodeInputId = -1;
    this.specCandidates = noCandidates;
    this.replay = 0;
    this.deviceHitTokens = 0;
    this.hostHitTokens = 0;
    this.storageHitTokens = 0;
    return this;
  }

  /** Lets go of the request and its prompt, once nobody can see the row. */
  clear(): void {
    this.source = undefined;
    this.requestId = "";
    this.tokens = noTokens;
    this.specCandidates = noCandidates;
  }
}

export class TableChangesBuffer implements GroupTableChanges {
  replacedOffsets: Int32Array = new Int32Array(1);
  nulledBegins: Int32Array = noTokens;
  nulledEnds: Int32Array = noTokens;
  appendedOffsets: Int32Array = new Int32Array(1);
  tableLengths: Int32Array = noTokens;
  readonly #replacedColumns = new Int32List();
  readonly #replacedIds = new Int32List();
  readonly #appendedIds = new Int32List(64);
  #numRows = 0;

  get replacedColumns(): Int32Array {
    return this.#replacedColumns.items;
  }

  get replacedIds(): Int32Array {
    return this.#replacedIds.items;
  }

  get appendedIds(): Int32Array {
    return this.#appendedIds.items;
  }

  start(numRows: number): void {
    this.#numRows = 0;
    this.#replacedColumns.clear();
    this.#replacedIds.clear();
    this.#appendedIds.clear();
    if (numRows <= this.tableLengths.length) return;
    const capacity = Math.max(numRows, this.tableLengths.length * 2);
    this.replacedOffsets = new Int32Array(capacity + 1);
    this.appendedOffsets = new Int32Array(capacity + 1);
    this.nulledBegins = new Int32Array(capacity);
    this.nulledEnds = new Int32Array(capacity);
    this.tableLengths = new Int32Array(capacity);
  }

  /** Takes the next row's changes out of its table. */
  addRow(table: BlockTable): void {
    const row = this.#numRows++;
    const { replaced, appendedFrom, length } = table;
    for (let i = 0; i < replaced.length; i += 2) {
      if (replaced.items[i] >= appendedFrom) continue;
      this.#replacedColumns.push(replaced.items[i]);
      this.#replacedIds.push(replaced.items[i + 1]);
    }
    this.nulledBegins[row] = table.nulledBegin;
    this.nulledEnds[row] = table.nulledEnd;
    if (length > appendedFrom) {
      this.#appendedIds.reserve(this.#appendedIds.length + length - appendedFrom);
      for (let slot = appendedFrom; slot < length; slot++) this.#appendedIds.push(table.at(slot));
    }
    this.replacedOffsets[row + 1] = this.#replacedColumns.length;
    this.appendedOffsets[row + 1] = this.#appendedIds.length;
    this.tableLengths[row] = length;
    table.clearChanges();
  }
}

export class BatchBuffer implements ForwardBatch {
  readonly rows: RowBuffer[] = [];
  numPrefills = 0;
  planId = 0;
  readonly tableChanges: readonly TableChangesBuffer[];
  /** Rows in the order in which they were added; those from #numUsed on wait to be used again. */
  readonly #pool: RowBuffer[] = [];
  #numUsed = 0;
  /** Rows used until the last finish, which still refer to requests. */
  #numReferring = 0;
  #numPrefillRows = 0;

  constructor(numGroups: number) {
    this.tableChanges = Array.from({ length: numGroups }, () => new TableChangesBuffer());
  }

  get size(): number {
    return this.#numUsed;
  }

  start(planId: number): void {
    this.planId = planId;
    this.#numUsed = 0;
    this.#numPrefillRows = 0;
  }

  addRow(source: Request, isPrefill: boolean): RowBuffer {
    source.lastPlanId = this.planId;
    if (this.#numUsed === this.#pool.length) this.#pool.push(new RowBuffer());
    const row = this.#pool[this.#numUsed++].start(source);
    row.isPrefill = isPrefill;
    if (isPrefill) this.#numPrefillRows++;
    return row;
  }

  get numPrefillRows(): number {
    return this.#numPrefillRows;
  }

  get numDecodeRows(): number {
    return this.#numUsed - this.#numPrefillRows;
  }

  /** Settles the row order and takes the table changes of every row. */
  finish(): void {
    const { rows } = this;
    // An array emptied and filled anew would give its storage back and take new storage, round by round.
    if (rows.length > this.#numUsed) rows.length = this.#numUsed;
    for (let i = this.#numUsed; i < this.#numReferring; i++) this.#pool[i].clear();
    this.#numReferring = this.#numUsed;
    while (rows.length < this.#numUsed) rows.push(this.#pool[rows.length]);
    let nextPrefill = 0;
    let nextDecode = this.#numPrefillRows;
    for (let i = 0; i < this.#numUsed; i++) {
      const row = this.#pool[i];
      rows[row.isPrefill ? nextPrefill++ : nextDecode++] = row;
    }
    this.numPrefills = this.#numPrefillRows;
    for (let group = 0; group < this.tableChanges.length; group++) {
      const changes = this.tableChanges[group];
      changes.start(rows.length);
      for (let i = 0; i < rows.length; i++) {
        const { source } = rows[i];
        if (source !== undefined) changes.addRow(source.tables[group]);
      }
    }
  }
}
