/** Activation buffers: device matrices of a fixed number of rows, allocated once and shared by all layers. */
import { type Address, type Device, type Dtype, dtypeBytes, dtypes } from "../../ffi/device";
import { broken } from "../assert";

/** A row-major device matrix; `stride` counts elements from row to row. */
export interface Tensor {
  readonly address: Address;
  readonly columns: number;
  readonly stride: number;
  readonly dtype: Dtype;
}

export class ActivationBuffers {
  readonly maxRows: number;
  readonly dtype: Dtype;
  readonly #device: Device;
  readonly #tensors = new Map<string, Tensor & { readonly rows: number }>();
  #totalBytes = 0;

  /** `dtype` is the activations' own; buffers may ask for another. */
  constructor(device: Device, maxRows: number, dtype: Dtype) {
    this.#device = device;
    this.maxRows = maxRows;
    this.dtype = dtype;
  }

  get totalBytes(): number {
    return this.#totalBytes;
  }

  /** The buffer of that name; every asker of a name wants the same shape. */
  tensor(
    name: string,
    columns: number,
    options: { readonly dtype?: Dtype; readonly rows?: number } = {},
  ): Tensor {
    const { dtype = this.dtype, rows = this.maxRows } = options;
    const known = this.#tensors.get(name);
    if (known !== undefined) {
      if (known.columns !== columns || known.dtype !== dtype || known.rows !== rows)
        broken(`buffer '${name}' is asked for in two shapes`);
      return known;
    }
    const bytes = rows * columns * dtypeBytes[dtype];
    const tensor = {
      address: this.#device.allocate(bytes, `activations '${name}'`),
      rows,
      columns,
      stride: columns,
      dtype,
    };
    this.#totalBytes += bytes;
    this.#tensors.set(name, tensor);
    return tensor;
  }

  /** Untyped scratch of at least `bytes`, or 0 when none is needed. */
  scratch(name: string, bytes: number): Address {
    const options = { dtype: "float32", rows: 1 } as const;
    return bytes === 0 ? 0 : this.tensor(`${name}.${bytes}`, Math.ceil(bytes / 4), options).address;
  }
}

export const dtypeNumber = (tensor: Tensor): number => dtypes[tensor.dtype];
