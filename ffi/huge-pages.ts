/**
 * Gathers the process's own scattered pages into huge ones, a slice at a time, so that a step which touches
 * memory that rested meets few translations instead of many. Does not concern device memory or mapped files.
 */
import { dlopen, FFIType, type Pointer, ptr } from "bun:ffi";
import { readFileSync } from "node:fs";

const { i32, i64, ptr: pointer } = FFIType;

const libc = dlopen("libc.so.6", {
  madvise: { args: [pointer, i64, i32], returns: i32 },
  mincore: { args: [pointer, i64, pointer], returns: i32 },
});

const pageBytes = 4096;
const hugeBytes = 2 * 1024 * 1024;
const pagesPerHuge = hugeBytes / pageBytes;
const adviseHuge = 14;
const collapse = 25;
/** Residency is asked for as many huge pages at once; few, as a slice reads a byte for each small one. */
const hugePagesPerLook = 16;
/** Mappings above are reservations of address space by drivers, and of no use to look through. */
const maxMappingBytes = 16 * 1024 ** 3;
/** A huge page is worth its memory when at least an eighth of it is in use. */
const minResidentPages = pagesPerHuge / 8;

const switchPath = "/sys/kernel/mm/transparent_hugepage/enabled";
const mapsPath = "/proc/self/maps";

/** One anonymous mapping, cut to whole huge pages. */
export interface HugeRange {
  readonly begin: number;
  readonly end: number;
}

/** Private, writable, anonymous mappings of a /proc/<pid>/maps, stacks left out. */
export function anonymousRanges(maps: string): HugeRange[] {
  const ranges: HugeRange[] = [];
  for (const line of maps.split("\n")) {
    const match = /^([0-9a-f]+)-([0-9a-f]+) rw.p \S+ \S+ 0 *(\[heap\]|\[anon.*)?$/.exec(line);
    if (match === null) continue;
    const begin = Math.ceil(Number.parseInt(match[1] ?? "", 16) / hugeBytes) * hugeBytes;
    const end = Math.floor(Number.parseInt(match[2] ?? "", 16) / hugeBytes) * hugeBytes;
    if (end > begin && end - begin <= maxMappingBytes) ranges.push({ begin, end });
  }
  return ranges;
}

/** False where the operator switched huge pages off or the kernel has none. */
function areHugePagesAllowed(): boolean {
  try {
    return !readFileSync(switchPath, "utf8").includes("[never]");
  } catch {
    return false;
  }
}

export class HugePages {
  readonly #isAllowed = areHugePagesAllowed();
  readonly #residency = new Uint8Array(hugePagesPerLook * pagesPerHuge);
  readonly #residencyAddress = ptr(this.#residency);
  /** What this pass has yet to look at, last first. */
  #ranges: HugeRange[] | undefined;
  /** Huge pages that the last look found worth gathering. */
  readonly #found: number[] = [];
  /** Huge pages gathered so far, those that were whole already included. */
  numGathered = 0;

  /**
   * Gathers one huge page or looks for more of them; true when the pass is over. Looking takes some tens of
   * us, the first looks of a process a few ms, gathering a page up to 16 ms: the kernel waits for every core
   * and copies the page, and cannot do less at a time. A page that cannot be gathered now, for want of memory
   * or because it is pinned, stays as it is.
   */
  slice(): boolean {
    if (!this.#isAllowed) return true;
    this.#ranges ??= anonymousRanges(readFileSync(mapsPath, "latin1")).reverse();
    const address = this.#found.pop();
    if (address !== undefined) {
      if (libc.symbols.madvise(address as Pointer, hugeBytes, collapse) === 0) this.numGathered++;
      return false;
    }
    const range = this.#ranges.pop();
    if (range === undefined) {
      this.#ranges = undefined;
      return true;
    }
    const end = Math.min(range.end, range.begin + hugePagesPerLook * hugeBytes);
    if (end < range.end) this.#ranges.push({ begin: end, end: range.end });
    this.#look(range.begin, end);
    return false;
  }

  /** Notes which huge pages of [begin, end) are in use enough. */
  #look(begin: number, end: number): void {
    if (libc.symbols.mincore(begin as Pointer, end - begin, this.#residencyAddress) !== 0) return;
    for (let address = begin; address < end; address += hugeBytes) {
      const first = (address - begin) / pageBytes;
      let numResident = 0;
      for (let page = first; page < first + pagesPerHuge; page++) numResident += this.#residency[page] & 1;
      if (numResident < minResidentPages) continue;
      libc.symbols.madvise(address as Pointer, hugeBytes, adviseHuge);
      this.#found.push(address);
    }
  }
}
