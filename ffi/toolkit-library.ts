/** Opens the first usable of a toolkit library's places, and says what was wrong with the others. */
import { libraryFault } from "./shared-library";
import { loaderCandidates, toolkitLibraries } from "./toolkit-paths";

export interface ToolkitSearch<Library> {
  /** Undefined where no place holds one that works. */
  readonly library: Library | undefined;
  /** Of what was named, or else of the files that were there: each names its path. */
  readonly faults: readonly string[];
}

/**
 * `open` gets what dlopen takes and throws where that is not the library. Nothing is opened that is not
 * whole: a name of the loader's own counts as whole when all files are that it may stand for.
 */
export function openToolkitLibrary<Library>(
  stem: string,
  given: string | undefined,
  open: (name: string) => Library,
): ToolkitSearch<Library> {
  const isGiven = given !== undefined && given !== "";
  const faults: string[] = [];
  for (const name of toolkitLibraries(stem, given)) {
    const files = loaderCandidates(name);
    const broken = files.flatMap((file) => libraryFault(file) ?? []);
    if (broken.length > 0) {
      faults.push(...broken);
      continue;
    }
    try {
      return { library: open(name), faults };
    } catch (error) {
      const { message } = error as Error;
      if (isGiven || files.length > 0) faults.push(message.includes(name) ? message : `${name}: ${message}`);
    }
  }
  return { library: undefined, faults };
}

/** Tells a name that nobody gave from one that leads nowhere, and a broken file from none. */
export function absence(variable: string, given: string | undefined, faults: readonly string[]): string {
  const subject = given === undefined || given === "" ? "not found" : `${variable} names no usable library`;
  return faults.length === 0 ? subject : `${subject} (${faults.join("; ")})`;
}
