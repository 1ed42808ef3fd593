/**
 * The device memory behind all cache groups: one zero-filled buffer and the address of every planned field in
 * it. Knows bytes, never tokens; who owns which block is the cache core's affair.
 */

import { layoutOf, writeField } from "../../ffi/argument-block";
import { fieldBlock } from "../../ffi/blocks";
import type { Address, Device, Op } from "../../ffi/device";
import { assert, GranaryError } from "../assert";
import type { CacheMemoryPlan, PlannedField } from "../recipes/bind";

/** Where block 0 of a field lies; block i is `pageStrideBytes` times i behind it. */
export interface FieldView {
  readonly field: PlannedField;
  readonly base: Address;
  readonly pageStrideBytes: number;
}

interface GroupZeroing {
  readonly pageCount: number;
  readonly op: Op<"zeroBlocks">;
}

/** Copies a table of fields to the device, in the layout of GranaryField. */
export function uploadFields(device: Device, fields: readonly FieldView[], purpose: string): Address {
  const { offsets, bytes } = layoutOf(fieldBlock);
  const memory = new Uint8Array(bytes * fields.length);
  const view = new DataView(memory.buffer);
  fields.forEach(({ base, pageStrideBytes, field }, index) => {
    const at = (name: string) => index * bytes + (offsets[name] as number);
    writeField(view, at("base"), "address", base);
    writeField(view, at("strideBytes"), "int64", pageStrideBytes);
    writeField(view, at("payloadBytes"), "int64", field.payloadBytes);
  });
  const address = device.allocate(memory.byteLength, purpose);
  device.upload(address, memory);
  return address;
}

export class CacheArena {
  readonly plan: CacheMemoryPlan;
  readonly #device: Device;
  readonly #base: Address;
  readonly #views: ReadonlyMap<string, FieldView>;
  readonly #zeroing: ReadonlyMap<string, GroupZeroing>;
  readonly #ids: Address;
  readonly #idCapacity: number;
  readonly #allocated: Address[] = [];

  constructor(device: Device, plan: CacheMemoryPlan) {
    this.plan = plan;
    this.#device = device;
    this.#base = this.#keep(device.allocate(plan.arenaBytes, "the cache arena"));
    this.#views = new Map(
      plan.fields.map((field) => [
        field.fieldId,
        { field, base: this.#base + field.arenaOffsetBytes, pageStrideBytes: field.pageStrideBytes },
      ]),
    );
    this.#idCapacity = Math.max(...plan.groups.map(({ pageCount }) => pageCount));
    this.#ids = this.#keep(device.allocate(this.#idCapacity * 4, "block ids to clear"));
    this.#zeroing = new Map(
      plan.groups.map(({ groupId, pageCount }) => {
        const views = [...this.#views.values()].filter(({ field }) => field.groupId === groupId);
        const fields = this.#keep(uploadFields(device, views, `field table of '${groupId}'`));
        const op = device.op("zeroBlocks", { fields, ids: this.#ids, numFields: views.length });
        return [groupId, { pageCount, op }];
      }),
    );
  }

  fieldView(fieldId: string): FieldView {
    const view = this.#views.get(fieldId);
    if (view === undefined)
      throw new GranaryError("unplanned_field", `the cache plan has no field '${fieldId}'`);
    return view;
  }

  /** Clears the first `count` of `ids` in every field of the group, behind all work enqueued before. */
  zeroBlocks(groupId: string, ids: Int32Array, count: number): void {
    if (count === 0) return;
    const group = this.#zeroing.get(groupId);
    if (group === undefined)
      throw new GranaryError("unknown_group", `the cache plan has no group '${groupId}'`);
    assert(count <= this.#idCapacity, `${count} blocks of '${groupId}' are to be cleared at once`);
    for (let i = 0; i < count; i++) {
      const id = ids[i] ?? -1;
      if (id < 0 || id >= group.pageCount) {
        throw new GranaryError(
          "invalid_block",
          `block ${id} of '${groupId}' is outside 0..${group.pageCount - 1}`,
        );
      }
    }
    this.#device.upload(this.#ids, ids.subarray(0, count));
    group.op.set("numIds", count).launch();
  }

  /** Gives the memory back; nothing may use the arena any more. */
  close(): void {
    for (const address of this.#allocated.splice(0)) this.#device.free(address);
  }

  #keep(address: Address): Address {
    this.#allocated.push(address);
    return address;
  }
}
