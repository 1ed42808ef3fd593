/**
 * Whether a file is all of a shared library, judged by its headers alone. The loader maps what they promise
 * and dies of a bus error where the file ends sooner, and it waits for ever on a pipe.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";

const headerBytes = 64;
/** PT_LOAD: a piece of the file that the loader maps. */
const loadedPiece = 1;

interface Table {
  readonly offset: number;
  readonly entryBytes: number;
  readonly numEntries: number;
}

const endOf = ({ offset, entryBytes, numEntries }: Table) => offset + entryBytes * numEntries;

function read(file: number, offset: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  return buffer.subarray(0, readSync(file, buffer, 0, bytes, offset));
}

const long = (bytes: Buffer, at: number) => Number(bytes.readBigUInt64LE(at));

function table(header: Buffer, offsetAt: number, entryAt: number): Table {
  return {
    offset: long(header, offsetAt),
    entryBytes: header.readUInt16LE(entryAt),
    numEntries: header.readUInt16LE(entryAt + 2),
  };
}

/** The headers of a 64-bit little-endian ELF file and all that they say is loaded lie inside `fileBytes`. */
function holdsItsPieces(file: number, fileBytes: number): boolean {
  const header = read(file, 0, headerBytes);
  if (header.length < headerBytes || header.toString("latin1", 0, 6) !== "\x7fELF\x02\x01") return false;
  const [pieces, sections] = [table(header, 32, 54), table(header, 40, 58)];
  if (endOf(pieces) > fileBytes || endOf(sections) > fileBytes || pieces.entryBytes < 40) return false;
  const entries = read(file, pieces.offset, pieces.entryBytes * pieces.numEntries);
  for (let at = 0; at < entries.length; at += pieces.entryBytes) {
    const isLoaded = entries.readUInt32LE(at) === loadedPiece;
    if (isLoaded && long(entries, at + 8) + long(entries, at + 32) > fileBytes) return false;
  }
  return true;
}

/** What keeps the loader from `path`, which it names; undefined when nothing does that the headers tell. */
export function libraryFault(path: string): string | undefined {
  try {
    const state = statSync(path, { throwIfNoEntry: false });
    if (state === undefined) return `${path} does not exist`;
    if (!state.isFile()) return `${path} is not a file`;
    const file = openSync(path, "r");
    try {
      return holdsItsPieces(file, fstatSync(file).size) ? undefined : `${path} is not a whole shared library`;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    return `${path} cannot be read: ${(error as Error).message}`;
  }
}
