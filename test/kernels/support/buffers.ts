/** Device memory of one test: filled from host arrays, read back by dtype, freed together. */
import { ptr } from "bun:ffi";
import { type Address, type Device, type Dtype, dtypeBytes } from "../../../ffi/device";
import { fromBfloat16, toBfloat16 } from "./bfloat16";
import { allocateGuarded } from "./guard-page";

export class Buffers {
  readonly device: Device;
  readonly #allocations: Address[] = [];

  constructor(device: Device) {
    this.device = device;
  }

  allocate(bytes: number): Address {
    const { allocation, address } = allocateGuarded(this.device, bytes);
    this.#allocations.push(allocation);
    return address;
  }

  /** Copies an array in as it is. */
  put(array: NodeJS.TypedArray): Address {
    const address = this.allocate(array.byteLength);
    this.device.upload(address, array);
    return address;
  }

  /** Copies values in as float32 or bfloat16. */
  putFloats(values: Float32Array, dtype: Dtype): Address {
    return this.put(dtype === "bfloat16" ? toBfloat16(values) : values);
  }

  /** A row-major matrix as a prepared weight. */
  putWeight(values: Float32Array, rows: number, columns: number, dtype: Dtype): Address {
    const source = dtype === "bfloat16" ? toBfloat16(values) : values;
    const place = {
      sourceStride: columns,
      rows,
      columns,
      totalRows: rows,
      sourceDtype: dtype === "bfloat16" ? 1 : 0,
      dtype: dtype === "bfloat16" ? 1 : 0,
    };
    const prepared = this.allocate(this.device.weightBytes(place));
    this.device.prepareWeight({ ...place, hostSource: ptr(source), prepared });
    this.device.synchronize();
    return prepared;
  }

  floats(address: Address, count: number, dtype: Dtype): Float32Array {
    if (dtype !== "bfloat16") return this.get(address, new Float32Array(count));
    return fromBfloat16(this.get(address, new Uint16Array(count)));
  }

  int32s(address: Address, count: number): Int32Array {
    return this.get(address, new Int32Array(count));
  }

  get<T extends NodeJS.TypedArray>(address: Address, into: T): T {
    this.device.download(into, address);
    return into;
  }

  release(): void {
    for (const address of this.#allocations.splice(0)) this.device.free(address);
  }
}

/** Bytes of `count` elements. */
export function bytesOf(count: number, dtype: Dtype): number {
  return count * dtypeBytes[dtype];
}
