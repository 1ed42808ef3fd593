/**
 * Holds a plan's operations to their promise: an operation that copies nothing is never acknowledged, and one
 * copy twice is a lost block. Both are ours to avoid.
 */
import { broken } from "../../assert";
import type { TransferOp } from "./transfer-types";

/** Transfers seen so far, three words each behind 1 + position in `table`; kept between plans. */
let table = new Int32Array(0);
let triples = new Int32Array(0);

export function assertWellFormed(ops: readonly TransferOp[]): void {
  let numTransfers = 0;
  for (const op of ops) {
    if (op.numTransfers <= 0) broken(`transfer operation ${op.opId} has nothing to copy`);
    numTransfers += op.numTransfers;
  }
  const numSlots = 2 ** Math.ceil(Math.log2(numTransfers * 2 + 2));
  if (table.length < numSlots) {
    table = new Int32Array(numSlots);
    triples = new Int32Array(numSlots * 3);
  } else table.fill(0, 0, numSlots);
  let position = 0;
  for (const { numTransfers, groups, sources, destinations } of ops) {
    for (let i = 0; i < numTransfers; i++) {
      note(position++, numSlots - 1, groups[i], sources[i], destinations[i]);
    }
  }
}

/** Adds one transfer to those seen; broken when it was there. */
function note(position: number, mask: number, group: number, source: number, destination: number): void {
  const mixed = Math.imul(Math.imul(source, 0x9e3779b1) ^ destination, 0x85ebca6b) ^ group;
  let slot = (mixed ^ (mixed >>> 15)) & mask;
  while (table[slot] !== 0) {
    const at = (table[slot] - 1) * 3;
    if (triples[at] === group && triples[at + 1] === source && triples[at + 2] === destination)
      repeated(group, source, destination);
    slot = (slot + 1) & mask;
  }
  table[slot] = position + 1;
  triples[position * 3] = group;
  triples[position * 3 + 1] = source;
  triples[position * 3 + 2] = destination;
}

function repeated(group: number, source: number, destination: number): never {
  broken(`transfer ${group} ${source} ${destination} repeats within one plan`);
}
