/**
 * One compute device behind the C ABI: memory, copies, events, graphs and ops. The CPU and the CUDA library
 * are driven by this same class; what runs when is decided by its callers.
 */
import { CString, type Pointer, ptr, toArrayBuffer } from "bun:ffi";
import { ArgumentBlock, type BlockSchema, type FieldValues, layoutOf } from "./argument-block";
import {
  attentionKernelBlock,
  deviceInfoBlock,
  initBlock,
  type OpName,
  opSchemas,
  synthesizeBlock,
  weightBlock,
} from "./blocks";
import { NativeError } from "./errors";
import { deviceInfoTextBytes, type KernelLibrary } from "./library";

/** A device address as a number; 0 is absent. */
export type Address = number;

export const dtypes = { float32: 0, bfloat16: 1, float16: 2, int32: 3 } as const;
export type Dtype = keyof typeof dtypes;
export const dtypeBytes: Readonly<Record<Dtype, number>> = { float32: 4, bfloat16: 2, float16: 2, int32: 4 };

const copyKinds = { hostToDevice: 0, deviceToHost: 1, deviceToDevice: 2 } as const;
export type CopyKind = keyof typeof copyKinds;

export interface DeviceInfo {
  readonly name: string;
  readonly features: string;
  readonly totalBytes: number;
  readonly freeBytes: number;
  /** 0 on the CPU. */
  readonly computeMajor: number;
  readonly computeMinor: number;
  readonly numMultiprocessors: number;
  readonly driverVersion: number;
  readonly runtimeVersion: number;
  /** 0 without it. */
  readonly cublasLtVersion: number;
}

export interface DeviceOptions {
  readonly kind: "cpu" | "cuda";
  readonly deviceOrdinal?: number;
  readonly numThreads?: number;
  readonly workspaceBytes?: number;
  readonly debugChecks?: boolean;
}

/** An op with its argument block: fields are set in place, `launch` enqueues it. */
export class Op<N extends OpName> {
  readonly block: ArgumentBlock<(typeof opSchemas)[N]>;
  readonly #library: KernelLibrary;
  readonly #function: (block: Pointer) => number;

  constructor(library: KernelLibrary, name: N, values: FieldValues<(typeof opSchemas)[N]>) {
    this.block = new ArgumentBlock(opSchemas[name], values);
    this.#library = library;
    this.#function = library.ops[name];
  }

  set(name: keyof (typeof opSchemas)[N] & string, value: number): this {
    this.block.set(name, value);
    return this;
  }

  launch(): void {
    const status = this.#function(this.block.pointer as Pointer);
    if (status !== 0) this.#library.check(status);
  }
}

/** One piece of device memory and who asked for it. */
export interface Allocation {
  readonly bytes: number;
  readonly purpose: string;
}

export type ScratchOp = "attention" | "moe" | "sample";

function noRoom(purpose: string, bytes: number, freeBytes: number): NativeError {
  const [asked, free] = [(bytes / 2 ** 20).toFixed(1), (freeBytes / 2 ** 20).toFixed(0)];
  return new NativeError("out_of_memory", `no room for ${purpose}: ${asked} MiB asked, ${free} MiB free`);
}

export class Device {
  readonly kind: "cpu" | "cuda";
  readonly #library: KernelLibrary;
  /** What is allocated now, in the order in which it was. */
  readonly #allocations = new Map<Address, Allocation>();

  /** Initialises the library; one Device a library and process at a time. */
  constructor(library: KernelLibrary, options: DeviceOptions) {
    this.kind = options.kind;
    this.#library = library;
    const block = new ArgumentBlock(initBlock, {
      workspaceBytes: options.workspaceBytes ?? 0,
      deviceOrdinal: options.deviceOrdinal ?? 0,
      numThreads: options.numThreads ?? 1,
      debugChecks: options.debugChecks ? 1 : 0,
    });
    library.check(library.core.granary_init(block.pointer as Pointer));
  }

  /**
   * Has products go through the cuBLASLt that dlopen finds under this name; returns its version. Throws a
   * NativeError where it cannot be used, and products stay on our own kernels.
   */
  openCublasLt(name: string): number {
    this.#library.check(this.#library.core.granary_open_cublaslt(Buffer.from(`${name}\0`)));
    return this.info().cublasLtVersion;
  }

  info(): DeviceInfo {
    const { offsets, bytes } = layoutOf(deviceInfoBlock as BlockSchema);
    const memory = new Uint8Array(bytes + 2 * deviceInfoTextBytes);
    this.#library.check(this.#library.core.granary_device_info(ptr(memory)));
    const view = new DataView(memory.buffer);
    const text = (offset: number) => new CString(ptr(memory, offset)).toString();
    const int32 = (name: string) => view.getInt32(offsets[name] as number, true);
    const int64 = (name: string) => Number(view.getBigInt64(offsets[name] as number, true));
    return {
      name: text(bytes),
      features: text(bytes + deviceInfoTextBytes),
      totalBytes: int64("totalBytes"),
      freeBytes: int64("freeBytes"),
      computeMajor: int32("computeMajor"),
      computeMinor: int32("computeMinor"),
      numMultiprocessors: int32("numMultiprocessors"),
      driverVersion: int32("driverVersion"),
      runtimeVersion: int32("runtimeVersion"),
      cublasLtVersion: int32("cublasLtVersion"),
    };
  }

  /** Zero-filled, aligned to 256 bytes. `purpose` names the asker in the error when memory is short. */
  allocate(bytes: number, purpose: string): Address {
    const address = this.#library.core.granary_alloc(Math.max(bytes, 1));
    if (address === null || Number(address) === 0) throw noRoom(purpose, bytes, this.info().freeBytes);
    this.#allocations.set(Number(address), { bytes, purpose });
    return Number(address);
  }

  /** Throws as `allocate` does when what will be taken piece by piece cannot fit together. */
  demandRoom(bytes: number, purpose: string): void {
    const { freeBytes } = this.info();
    if (bytes > freeBytes) throw noRoom(purpose, bytes, freeBytes);
  }

  /** Everything allocated and not freed, oldest first. */
  get allocations(): ReadonlyMap<Address, Allocation> {
    return this.#allocations;
  }

  free(address: Address): void {
    this.#allocations.delete(address);
    this.#library.check(this.#library.core.granary_free(address as Pointer));
  }

  /** Host memory that copies may use while the program goes on; page-locked where that exists. */
  allocatePinned(
    bytes: number,
    purpose: string,
  ): { readonly address: Address; readonly memory: ArrayBuffer } {
    const address = this.#library.core.granary_alloc_pinned(bytes);
    if (address === null)
      throw new NativeError("out_of_memory", `no pinned memory for ${purpose}: ${bytes} bytes`);
    return { address: Number(address), memory: toArrayBuffer(address, 0, bytes) };
  }

  freePinned(address: Address): void {
    this.#library.check(this.#library.core.granary_free_pinned(address as Pointer));
  }

  copy(destination: Address, source: Address, bytes: number, kind: CopyKind): void {
    const status = this.#library.core.granary_copy(
      destination as Pointer,
      source as Pointer,
      bytes,
      copyKinds[kind],
    );
    if (status !== 0) this.#library.check(status);
  }

  /** Copies a host array in; the array may be reused on return. */
  upload(destination: Address, source: NodeJS.TypedArray): void {
    if (source.byteLength > 0) this.copy(destination, ptr(source), source.byteLength, "hostToDevice");
  }

  /** Copies into a host array and waits until it is there. */
  download(destination: NodeJS.TypedArray, source: Address): void {
    if (destination.byteLength === 0) return;
    this.copy(ptr(destination), source, destination.byteLength, "deviceToHost");
    this.synchronize();
  }

  synchronize(): void {
    this.#library.check(this.#library.core.granary_synchronize());
  }

  createEvent(withTiming = false): Address {
    const event = this.#library.core.granary_event_create(withTiming ? 1 : 0);
    if (event === null) throw new NativeError("device", this.#library.lastError());
    return Number(event);
  }

  recordEvent(event: Address): void {
    this.#library.check(this.#library.core.granary_event_record(event as Pointer));
  }

  isEventDone(event: Address): boolean {
    const answer = this.#library.core.granary_event_query(event as Pointer);
    if (answer < 0) throw new NativeError("device", this.#library.lastError());
    return answer === 1;
  }

  waitEvent(event: Address): void {
    this.#library.check(this.#library.core.granary_event_wait(event as Pointer));
  }

  elapsedNs(begin: Address, end: Address): number {
    return this.#library.core.granary_event_elapsed_ns(begin as Pointer, end as Pointer);
  }

  destroyEvent(event: Address): void {
    this.#library.check(this.#library.core.granary_event_destroy(event as Pointer));
  }

  /** Records what `enqueue` launches; the ops are not run. */
  capture(enqueue: () => void): Address {
    this.#library.check(this.#library.core.granary_capture_begin());
    let graph: unknown = null;
    try {
      enqueue();
    } finally {
      graph = this.#library.core.granary_capture_end();
    }
    if (graph === null) throw new NativeError("capture", this.#library.lastError());
    return Number(graph);
  }

  launchGraph(graph: Address): void {
    const status = this.#library.core.granary_graph_launch(graph as Pointer);
    if (status !== 0) this.#library.check(status);
  }

  destroyGraph(graph: Address): void {
    this.#library.check(this.#library.core.granary_graph_destroy(graph as Pointer));
  }

  /** True when a mapped row-major file can serve as a prepared weight of this dtype. */
  isPlainWeight(dtype: Dtype): boolean {
    return this.#library.core.granary_weight_is_plain(dtypes[dtype]) === 1;
  }

  weightBytes(values: FieldValues<typeof weightBlock>): number {
    const bytes = this.#library.core.granary_weight_bytes(
      new ArgumentBlock(weightBlock, values).pointer as Pointer,
    );
    if (bytes < 0) throw new NativeError("invalid", this.#library.lastError());
    return Number(bytes);
  }

  prepareWeight(values: FieldValues<typeof weightBlock>): void {
    const block = new ArgumentBlock(weightBlock, values);
    this.#library.check(this.#library.core.granary_prepare_weight(block.pointer as Pointer));
  }

  synthesize(values: FieldValues<typeof synthesizeBlock>): void {
    const block = new ArgumentBlock(synthesizeBlock, values);
    this.#library.check(this.#library.core.granary_synthesize(block.pointer as Pointer));
  }

  /** Hands in machine code that holds one attention kernel; ops take it from then on. */
  loadAttentionKernel(
    image: Uint8Array,
    values: Omit<FieldValues<typeof attentionKernelBlock>, "image">,
  ): void {
    const block = new ArgumentBlock(attentionKernelBlock, { ...values, image: ptr(image) });
    this.#library.check(this.#library.core.granary_load_attention_kernel(block.pointer as Pointer));
  }

  op<N extends OpName>(name: N, values: FieldValues<(typeof opSchemas)[N]>): Op<N> {
    return new Op(this.#library, name, values);
  }

  /** Scratch that an op with these arguments needs. */
  scratchBytes(kind: ScratchOp, block: { readonly pointer: number }): number {
    const functions = {
      attention: this.#library.core.granary_attention_scratch_bytes,
      moe: this.#library.core.granary_moe_scratch_bytes,
      sample: this.#library.core.granary_sample_scratch_bytes,
    };
    const bytes = functions[kind](block.pointer as Pointer);
    if (bytes < 0) throw new NativeError("invalid", this.#library.lastError());
    return Number(bytes);
  }

  close(): void {
    this.#library.check(this.#library.core.granary_shutdown());
  }
}
