/** Brings tensors of a source into prepared device weights, whole or stacked, and says how far it is. */
import { type Address, type Device, type Dtype, dtypeBytes, dtypes } from "../../ffi/device";
import { GranaryError } from "../assert";
import type { TensorSource } from "./tensor-source";

/** A prepared weight: [rows, columns] in the backend's own layout. */
export interface Weight {
  readonly address: Address;
  readonly dtype: Dtype;
  readonly rows: number;
  readonly columns: number;
}

/** One tensor of a stack; for a vector `rows` is its length. */
export interface StackedTensor {
  readonly name: string;
  readonly rows: number;
}

export type LoadProgress = (loadedBytes: number, tensorName: string) => void;

interface Place {
  readonly prepared: Address;
  readonly rows: number;
  readonly columns: number;
  readonly row: number;
  readonly totalRows: number;
  readonly dtype: Dtype;
}

export class WeightLoader {
  readonly #device: Device;
  readonly #source: TensorSource;
  readonly #computeDtype: Dtype;
  readonly #progress: LoadProgress;
  #loadedBytes = 0;
  #mappedBytes = 0;

  /** `computeDtype` is what the user asked to compute in: float32 or bfloat16. */
  constructor(device: Device, source: TensorSource, computeDtype: Dtype, progress: LoadProgress = () => {}) {
    this.#device = device;
    this.#source = source;
    this.#computeDtype = computeDtype;
    this.#progress = progress;
  }

  /** Bytes of prepared weights so far, those used in place included. */
  get loadedBytes(): number {
    return this.#loadedBytes;
  }

  /** Of these, bytes used where they are mapped. */
  get mappedBytes(): number {
    return this.#mappedBytes;
  }

  /** Tensors stacked by rows into one prepared matrix of `columns` columns. */
  matrix(parts: readonly StackedTensor[], columns: number): Weight {
    const first = parts[0] as StackedTensor;
    const dtype = this.#dtypeFor(parts, columns);
    const inPlace = parts.length === 1 ? this.#inPlace(first, columns, dtype) : undefined;
    if (inPlace !== undefined) return inPlace;
    const totalRows = parts.reduce((sum, { rows }) => sum + rows, 0);
    const bytes = this.#device.weightBytes({ columns, totalRows, dtype: dtypes[dtype] });
    const prepared = this.#device.allocate(bytes, `weight '${first.name}'`);
    let row = 0;
    for (const { name, rows } of parts) {
      this.#fill(name, [rows, columns], { prepared, rows, columns, row, totalRows, dtype });
      row += rows;
      this.#report((bytes * rows) / totalRows, name);
    }
    return { address: prepared, dtype, rows: totalRows, columns };
  }

  /** Vectors as float32, one after another; for norms and biases. */
  vector(parts: readonly StackedTensor[]): Address {
    const total = parts.reduce((sum, { rows }) => sum + rows, 0);
    const address = this.#device.allocate(total * dtypeBytes.float32, `weight '${parts[0]?.name}'`);
    let offset = 0;
    for (const { name, rows } of parts) {
      const prepared = address + offset * dtypeBytes.float32;
      this.#fill(name, [rows], { prepared, rows: 1, columns: rows, row: 0, totalRows: 1, dtype: "float32" });
      offset += rows;
    }
    this.#report(total * dtypeBytes.float32, parts[0]?.name ?? "");
    return address;
  }

  /**
   * float32 computing keeps bf16 weights as they are where a
   * product widens them exactly, which the CPU library does.
   */
  #dtypeFor(parts: readonly StackedTensor[], columns: number): Dtype {
    if (this.#computeDtype !== "float32" || this.#device.kind !== "cpu") return this.#computeDtype;
    const isBfloat16 = parts.every(({ name, rows }) => {
      const data = this.#source.data(name, [rows, columns]);
      return data.kind === "synthetic" || data.dtype === "bfloat16";
    });
    return isBfloat16 ? "bfloat16" : "float32";
  }

  /** A mapped matrix that already has the prepared layout is used where it lies. */
  #inPlace({ name, rows }: StackedTensor, columns: number, dtype: Dtype): Weight | undefined {
    const data = this.#source.data(name, [rows, columns]);
    const isUsable = data.kind === "mapped" && data.dtype === dtype && this.#device.kind === "cpu";
    if (!isUsable || !this.#device.isPlainWeight(dtype)) return undefined;
    const bytes = rows * columns * dtypeBytes[dtype];
    this.#mappedBytes += bytes;
    this.#report(bytes, name);
    return { address: data.address, dtype, rows, columns };
  }

  #fill(name: string, shape: readonly number[], place: Place): void {
    const data = this.#source.data(name, shape);
    const target = { ...place, dtype: dtypes[place.dtype], sourceStride: place.columns };
    if (data.kind === "synthetic") {
      const { a, b, scale, offset } = data;
      this.#device.synthesize({ ...target, sourceDtype: dtypes.bfloat16, a, b, scale, offset });
    } else if (data.dtype === "int32") {
      throw new GranaryError("invalid_checkpoint", `tensor '${name}' holds integers`);
    } else {
      this.#device.prepareWeight({ ...target, hostSource: data.address, sourceDtype: dtypes[data.dtype] });
    }
  }

  #report(bytes: number, name: string): void {
    this.#loadedBytes += bytes;
    this.#progress(this.#loadedBytes, name);
  }
}
