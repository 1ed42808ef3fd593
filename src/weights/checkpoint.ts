/**
 * A checkpoint directory: one safetensors file, or shards
 * with an index that must tell the truth in both directions.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { type MappedFile, mapFile } from "../../ffi/mmap";
import { GranaryError } from "../assert";
import { readSafetensorsHeader, type SafetensorsEntry } from "./safetensors";
import type { TensorDtype, TensorInfo, TensorSource } from "./tensor-source";

const singleFile = "model.safetensors";
const indexFile = "model.safetensors.index.json";

const computeDtypes: Readonly<Record<string, TensorDtype>> = {
  F32: "float32",
  BF16: "bfloat16",
  F16: "float16",
  I32: "int32",
};

interface Located {
  readonly file: MappedFile;
  readonly entry: SafetensorsEntry;
}

function fail(reason: string): never {
  throw new GranaryError("invalid_checkpoint", reason);
}

function readIndex(path: string): ReadonlyMap<string, string> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    fail(`${path}: not JSON (${(error as Error).message})`);
  }
  const weightMap = (parsed as { weight_map?: unknown } | null)?.weight_map;
  if (typeof weightMap !== "object" || weightMap === null) fail(`${path}: it has no weight_map`);
  return new Map(
    Object.entries(weightMap).map(([name, shard]) => {
      if (typeof shard !== "string" || shard !== basename(shard) || ["", ".", ".."].includes(shard)) {
        fail(`${path}: tensor '${name}' names ${JSON.stringify(shard)}, which is no file of this directory`);
      }
      return [name, shard];
    }),
  );
}

function openShards(
  directory: string,
  index: ReadonlyMap<string, string>,
  files: MappedFile[],
): Map<string, Located> {
  const located = new Map<string, Located>();
  for (const shard of new Set(index.values())) {
    const path = join(directory, shard);
    if (!existsSync(path)) fail(`${path}: the index names this file, but it is missing`);
    const file = mapFile(path);
    files.push(file);
    for (const entry of readSafetensorsHeader(file)) {
      if (index.get(entry.name) !== shard) {
        const claimed = index.get(entry.name);
        const where = claimed === undefined ? "does not know it" : `places it in ${claimed}`;
        fail(`${path}: it holds tensor '${entry.name}', but the index ${where}`);
      }
      located.set(entry.name, { file, entry });
    }
  }
  for (const [name, shard] of index) {
    if (!located.has(name))
      fail(`${join(directory, shard)}: tensor '${name}' is missing; the index places it here`);
  }
  return located;
}

/** Which files are read, and which weights beside them are not: a second copy is a frequent leftover. */
function describe(directory: string, files: readonly MappedFile[]): string {
  const read = new Set(files.map(({ path }) => basename(path)));
  const ignored = readdirSync(directory)
    .filter((name) => name.endsWith(".safetensors") && !read.has(name))
    .sort();
  const rest = ignored.length === 0 ? "" : `, ignoring ${ignored.join(", ")}`;
  return `${files.length} safetensors file${files.length === 1 ? "" : "s"} in ${directory}${rest}`;
}

/** True when the directory holds weights that openCheckpoint can read. */
export function hasCheckpoint(directory: string): boolean {
  return existsSync(join(directory, singleFile)) || existsSync(join(directory, indexFile));
}

/** Maps all files and checks all headers; no tensor byte is read yet. */
export function openCheckpoint(directory: string): TensorSource {
  const files: MappedFile[] = [];
  const close = () => {
    for (const file of files) file[Symbol.dispose]();
  };
  try {
    const located = locateTensors(directory, files);
    const infoOf = (name: string, { file, entry }: Located): TensorInfo => ({
      name,
      shape: entry.shape,
      dtype: entry.dtype,
      origin: file.path,
    });
    return {
      description: describe(directory, files),
      list: () => [...located].map(([name, place]) => infoOf(name, place)),
      find: (name) => {
        const place = located.get(name);
        return place === undefined ? undefined : infoOf(name, place);
      },
      data(name) {
        const place = located.get(name) ?? fail(`${directory}: tensor '${name}' is missing`);
        const dtype = computeDtypes[place.entry.dtype];
        if (dtype === undefined) {
          fail(`${place.file.path}: tensor '${name}' has dtype ${place.entry.dtype}, which is not supported`);
        }
        return { kind: "mapped", address: place.file.address + place.entry.offsetBytes, dtype };
      },
      [Symbol.dispose]: close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

function locateTensors(directory: string, files: MappedFile[]): Map<string, Located> {
  const index = join(directory, indexFile);
  if (existsSync(index)) return openShards(directory, readIndex(index), files);
  const single = join(directory, singleFile);
  if (!existsSync(single)) fail(`${directory}: it holds neither ${singleFile} nor ${indexFile}`);
  const file = mapFile(single);
  files.push(file);
  return new Map(readSafetensorsHeader(file).map((entry) => [entry.name, { file, entry }]));
}
