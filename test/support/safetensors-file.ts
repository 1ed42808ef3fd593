/** Writes safetensors files for tests, sound ones and broken ones. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface FileTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

/** A tensor of float32 values. */
export function float32Tensor(shape: readonly number[], values: readonly number[]): FileTensor {
  return { dtype: "F32", shape, bytes: new Uint8Array(Float32Array.from(values).buffer) };
}

/** A tensor of values that bfloat16 holds exactly. */
export function bfloat16Tensor(shape: readonly number[], values: readonly number[]): FileTensor {
  const words = new Uint32Array(Float32Array.from(values).buffer);
  return {
    dtype: "BF16",
    shape,
    bytes: new Uint8Array(Uint16Array.from(words, (word) => word >>> 16).buffer),
  };
}

/** Length, header as given, data. */
export function safetensorsBytes(header: string | object, data: Uint8Array = new Uint8Array()): Uint8Array {
  const text = new TextEncoder().encode(typeof header === "string" ? header : JSON.stringify(header));
  const file = new Uint8Array(8 + text.length + data.length);
  new DataView(file.buffer).setBigUint64(0, BigInt(text.length), true);
  file.set(text, 8);
  file.set(data, 8 + text.length);
  return file;
}

/** Tensors one after another. `misalignment` spaces after the header move the data off every alignment. */
export function writeSafetensors(
  path: string,
  tensors: Readonly<Record<string, FileTensor>>,
  options: { readonly misalignment?: number } = {},
): void {
  let offset = 0;
  const entries = Object.entries(tensors).map(([name, { dtype, shape, bytes }]) => {
    const range = [offset, offset + bytes.length];
    offset += bytes.length;
    return [name, { dtype, shape, data_offsets: range }] as const;
  });
  const data = new Uint8Array(offset);
  let at = 0;
  for (const { bytes } of Object.values(tensors)) {
    data.set(bytes, at);
    at += bytes.length;
  }
  const json = JSON.stringify(Object.fromEntries(entries));
  const aligned = json.padEnd(Math.ceil(json.length / 8) * 8);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, safetensorsBytes(aligned + " ".repeat(options.misalignment ?? 0), data));
}

/** A checkpoint of several files with its index; `shards` by file name. */
export function writeShards(
  directory: string,
  shards: Readonly<Record<string, Readonly<Record<string, FileTensor>>>>,
): void {
  const weightMap: Record<string, string> = {};
  for (const [file, tensors] of Object.entries(shards)) {
    writeSafetensors(join(directory, file), tensors);
    for (const name of Object.keys(tensors)) weightMap[name] = file;
  }
  writeIndex(directory, weightMap);
}

export function writeIndex(directory: string, weightMap: unknown): void {
  const index = { metadata: {}, weight_map: weightMap };
  writeFileSync(join(directory, "model.safetensors.index.json"), JSON.stringify(index));
}
