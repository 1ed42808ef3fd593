/**
 * A C struct of the ABI as a TypeScript object: fields written
 * in place, one stable address, no allocation after creation.
 */
import { ptr } from "bun:ffi";
import { NativeError } from "./errors";

/** address: u64 as a JS number; int64 and float64: 8 bytes; int32, uint32 and float32: 4 bytes. */
export type FieldType = "address" | "int64" | "float64" | "int32" | "uint32" | "float32";
export type BlockSchema = Readonly<Record<string, FieldType>>;
export type FieldValues<S extends BlockSchema> = { [K in keyof S]?: number };

const twoTo32 = 2 ** 32;

function sizeOf(type: FieldType): 4 | 8 {
  return type === "address" || type === "int64" || type === "float64" ? 8 : 4;
}

/** Byte offset of each field and the total size; the ABI's structs need no padding, which this checks. */
export function layoutOf(schema: BlockSchema): {
  readonly offsets: Readonly<Record<string, number>>;
  readonly bytes: number;
} {
  // Without a prototype, so that a name from there is no field either.
  const offsets: Record<string, number> = Object.create(null);
  let bytes = 0;
  for (const [name, type] of Object.entries(schema)) {
    if (bytes % sizeOf(type) !== 0) throw new Error(`field ${name} would need padding`);
    offsets[name] = bytes;
    bytes += sizeOf(type);
  }
  return { offsets, bytes: Math.ceil(bytes / 8) * 8 };
}

/** True when the field gives back what is written to it; floats are rounded. */
function holds(type: FieldType, value: number): boolean {
  switch (type) {
    case "int32":
      return value === (value | 0);
    case "uint32":
      return value === value >>> 0;
    case "address":
      return Number.isSafeInteger(value) && value >= 0;
    case "int64":
      return Number.isSafeInteger(value);
    default:
      return typeof value === "number";
  }
}

/** Writes one field of a struct. Throws on a value that would arrive as another, such as 2^31 in an int32. */
export function writeField(view: DataView, offset: number, type: FieldType, value: number): void {
  if (!holds(type, value)) throw new NativeError("invalid", `${value} does not fit a field of type ${type}`);
  if (type === "int32") view.setInt32(offset, value, true);
  else if (type === "uint32") view.setUint32(offset, value, true);
  else if (type === "float32") view.setFloat32(offset, value, true);
  else if (type === "float64") view.setFloat64(offset, value, true);
  else {
    view.setUint32(offset, value >>> 0, true);
    view.setInt32(offset + 4, Math.floor(value / twoTo32), true);
  }
}

export class ArgumentBlock<S extends BlockSchema> {
  readonly schema: S;
  readonly bytes: number;
  /** Host address of the block; stays valid as long as this object lives. */
  readonly pointer: number;
  readonly #view: DataView;
  readonly #offsets: Readonly<Record<string, number>>;

  constructor(schema: S, values: FieldValues<S> = {}) {
    const { offsets, bytes } = layoutOf(schema);
    this.schema = schema;
    this.bytes = bytes;
    this.#offsets = offsets;
    const memory = new Uint8Array(new ArrayBuffer(bytes));
    this.#view = new DataView(memory.buffer);
    this.pointer = ptr(memory);
    this.setAll(values);
  }

  set(name: keyof S & string, value: number): void {
    const offset = this.#offsets[name];
    if (offset === undefined) throw new NativeError("invalid", `the argument block has no field '${name}'`);
    writeField(this.#view, offset, this.schema[name] as FieldType, value);
  }

  setAll(values: FieldValues<S>): void {
    for (const name in values) this.set(name, values[name] as number);
  }

  get(name: keyof S & string): number {
    const offset = this.#offsets[name] as number;
    switch (this.schema[name]) {
      case "int32":
        return this.#view.getInt32(offset, true);
      case "uint32":
        return this.#view.getUint32(offset, true);
      case "float32":
        return this.#view.getFloat32(offset, true);
      case "float64":
        return this.#view.getFloat64(offset, true);
      default:
        return this.#view.getUint32(offset, true) + this.#view.getInt32(offset + 4, true) * twoTo32;
    }
  }
}
