/**
 * A group's page table on the device and the changes on
 * their way to it, scattered in stream order in batches.
 */
import type { Address, Device, Op } from "../../ffi/device";
import { maxPageTableUpdates } from "../limits";
import type { PageTableSink } from "./slot-tables";

export class PageTableUpdates implements PageTableSink {
  /** int32, [slots, width]. */
  readonly pageTable: Address;
  readonly #device: Device;
  readonly #host = new Int32Array(2 * maxPageTableUpdates);
  readonly #staged: Address;
  readonly #scatter: Op<"scatter">;
  #count = 0;

  constructor(device: Device, options: { readonly groupId: string; readonly numEntries: number }) {
    this.#device = device;
    this.pageTable = device.allocate(options.numEntries * 4, `page table of '${options.groupId}'`);
    this.#staged = device.allocate(this.#host.byteLength, `page table changes of '${options.groupId}'`);
    this.#scatter = device.op("scatter", {
      table: this.pageTable,
      indices: this.#staged,
      values: this.#staged + 4 * maxPageTableUpdates,
    });
  }

  set(index: number, page: number): void {
    if (this.#count === maxPageTableUpdates) this.flush();
    this.#host[this.#count] = index;
    this.#host[maxPageTableUpdates + this.#count] = page;
    this.#count++;
  }

  /** Enqueues what has gathered. */
  flush(): void {
    if (this.#count === 0) return;
    this.#device.upload(this.#staged, this.#host.subarray(0, this.#count));
    this.#device.upload(
      this.#staged + 4 * maxPageTableUpdates,
      this.#host.subarray(maxPageTableUpdates, maxPageTableUpdates + this.#count),
    );
    this.#scatter.set("count", this.#count).launch();
    this.#count = 0;
  }
}
