/**
 * Reads the header of one safetensors file and checks every
 * number in it against the file before anything is believed.
 */

import type { MappedFile } from "../../ffi/mmap";
import { GranaryError } from "../assert";
import { maxSafetensorsHeaderBytes } from "../limits";

/** Width in bits of the format's dtypes. */
const dtypeBits: Readonly<Record<string, number>> = {
  BOOL: 8,
  U8: 8,
  I8: 8,
  F8_E4M3: 8,
  F8_E5M2: 8,
  F8_E8M0: 8,
  U16: 16,
  I16: 16,
  F16: 16,
  BF16: 16,
  U32: 32,
  I32: 32,
  F32: 32,
  U64: 64,
  I64: 64,
  F64: 64,
};

export interface SafetensorsEntry {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** From the start of the file. */
  readonly offsetBytes: number;
  readonly lengthBytes: number;
}

function fail(path: string, reason: string): never {
  throw new GranaryError("invalid_checkpoint", `${path}: ${reason}`);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function parseEntry(
  path: string,
  name: string,
  raw: unknown,
  dataOffset: number,
  fileBytes: number,
): SafetensorsEntry {
  const entry = raw as { dtype?: unknown; shape?: unknown; data_offsets?: unknown } | null;
  if (typeof entry !== "object" || entry === null)
    fail(path, `tensor '${name}' is not described by an object`);
  const { dtype, shape, data_offsets: range } = entry;
  if (typeof dtype !== "string" || !Object.hasOwn(dtypeBits, dtype)) {
    fail(path, `tensor '${name}' has the unknown dtype ${JSON.stringify(dtype)}`);
  }
  if (!Array.isArray(shape) || !shape.every(isCount)) fail(path, `tensor '${name}' has no valid shape`);
  if (!Array.isArray(range) || range.length !== 2 || !range.every(isCount) || range[0] > range[1]) {
    fail(path, `tensor '${name}' has no valid data offsets`);
  }
  const [begin, end] = range as [number, number];
  if (dataOffset + end > fileBytes) {
    fail(
      path,
      `tensor '${name}' ends at byte ${dataOffset + end}, but the file has ${fileBytes}: it is truncated`,
    );
  }
  const bits = (shape as number[]).reduce((product, extent) => product * extent, dtypeBits[dtype] as number);
  if (bits !== (end - begin) * 8)
    fail(path, `tensor '${name}' has ${end - begin} bytes, its shape needs ${bits / 8}`);
  return { name, dtype, shape: shape as number[], offsetBytes: dataOffset + begin, lengthBytes: end - begin };
}

function checkLayout(path: string, entries: readonly SafetensorsEntry[], dataOffset: number): void {
  const sorted = [...entries].sort((a, b) => a.offsetBytes - b.offsetBytes || a.lengthBytes - b.lengthBytes);
  let end = dataOffset;
  for (const { name, offsetBytes, lengthBytes } of sorted) {
    if (offsetBytes < end) fail(path, `tensor '${name}' overlaps another`);
    end = offsetBytes + lengthBytes;
  }
}

/** Counts the top-level keys of a JSON object as written, to notice a name that stands twice. */
function hasDuplicateKeys(text: string, numKeys: number): boolean {
  let depth = 0;
  let keys = 0;
  for (let i = 0; i < text.length; i++) {
    const character = text[i];
    if (character === '"') {
      const begin = i;
      for (i++; i < text.length && text[i] !== '"'; i++) if (text[i] === "\\") i++;
      if (depth === 1 && /^\s*:/.test(text.slice(i + 1, i + 32)) && i > begin) keys++;
    } else if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") depth--;
  }
  return keys !== numKeys;
}

/** Entries of a mapped file in header order. */
export function readSafetensorsHeader(file: MappedFile): readonly SafetensorsEntry[] {
  const { path, bytes } = file;
  if (bytes < 8) fail(path, `${bytes} bytes are too few for a safetensors file`);
  const length = Number(new DataView(file.read(0, 8).buffer).getBigUint64(0, true));
  if (length > maxSafetensorsHeaderBytes) fail(path, `its header claims ${length} bytes`);
  if (8 + length > bytes)
    fail(path, `its header of ${length} bytes ends beyond the file's ${bytes}: it is truncated`);
  const text = new TextDecoder().decode(file.read(8, length));
  let header: unknown;
  try {
    header = JSON.parse(text);
  } catch {
    fail(path, "its header is not JSON");
  }
  if (typeof header !== "object" || header === null || Array.isArray(header))
    fail(path, "its header is not an object");
  const named = Object.entries(header);
  if (hasDuplicateKeys(text, named.length)) fail(path, "its header names a tensor twice");
  const entries = named
    .filter(([name]) => name !== "__metadata__")
    .map(([name, raw]) => parseEntry(path, name, raw, 8 + length, bytes));
  checkLayout(path, entries, 8 + length);
  return entries;
}
