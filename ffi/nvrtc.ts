/** NVIDIA's run-time compiler: finds it, opens it, and turns CUDA source into machine code for one card. */
import { CString, dlopen, FFIType, type Pointer, ptr } from "bun:ffi";
import { existsSync, readdirSync, readFileSync, realpathSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { NativeError } from "./errors";
import { libraryFault } from "./shared-library";
import { openToolkitLibrary, type ToolkitSearch } from "./toolkit-library";

const { ptr: address, i32 } = FFIType;
const symbols = {
  nvrtcVersion: { args: [address, address], returns: i32 },
  nvrtcGetErrorString: { args: [i32], returns: address },
  nvrtcCreateProgram: { args: [address, address, address, i32, address, address], returns: i32 },
  nvrtcAddNameExpression: { args: [address, address], returns: i32 },
  nvrtcCompileProgram: { args: [address, i32, address], returns: i32 },
  nvrtcGetProgramLogSize: { args: [address, address], returns: i32 },
  nvrtcGetProgramLog: { args: [address, address], returns: i32 },
  nvrtcGetCUBINSize: { args: [address, address], returns: i32 },
  nvrtcGetCUBIN: { args: [address, address], returns: i32 },
  nvrtcDestroyProgram: { args: [address], returns: i32 },
} as const;

type Symbols = ReturnType<typeof dlopen<typeof symbols>>["symbols"];

export interface CompileRequest {
  /** Complete: it includes nothing. */
  readonly source: string;
  /** C++ name of the one kernel that the machine code shall hold, e.g. `kernel<96, 3>`. */
  readonly kernel: string;
  readonly options: readonly string[];
}

/** RTLD_NOW of dlopen(3). */
const bindNow = 2;

/** A 64-bit value of C as two words, low first; addresses and sizes fit a number. */
const wordsOf = (value: number): [number, number] => [value >>> 0, Math.floor(value / 2 ** 32)];
const numberOf = ([low = 0, high = 0]: Uint32Array): number => low + high * 2 ** 32;

/** Text with the terminator that C expects. */
const cString = (text: string) => Buffer.from(`${text}\0`);

/**
 * The compiler looks for its builtins by name alone. Opened beside it by their full path, they are found also
 * where the loader would not look.
 */
function openBuiltins(libraryPath: string): void {
  const folder = dirname(libraryPath);
  const names = readdirSync(folder).filter((name) => /^libnvrtc-builtins\.so\.[\d.]+$/.test(name));
  const open = cDlopen();
  for (const name of names) {
    const path = join(folder, name);
    const fault = libraryFault(path);
    if (fault !== undefined) throw new NativeError("unsupported", fault);
    open?.(ptr(cString(path)), bindNow);
  }
}

/** The C function itself: Bun's wants to be told symbols, and these have the version in their names. */
function cDlopen(): ((path: Pointer, mode: number) => unknown) | undefined {
  for (const name of ["libc.so.6", "libdl.so.2"]) {
    try {
      return dlopen(name, { dlopen: { args: [address, i32], returns: address } }).symbols.dlopen;
    } catch {
      // C libraries before 2.34 keep it in a library of its own.
    }
  }
  return undefined;
}

/** The real path of a library that this process has open. */
function openedPath(name: string): string | undefined {
  if (isAbsolute(name)) return existsSync(name) ? realpathSync(name) : undefined;
  const maps = readFileSync("/proc/self/maps", "utf8");
  return maps.match(new RegExp(`/\\S*/${name.replace(/[.+]/g, "\\$&")}[\\d.]*$`, "m"))?.[0];
}

export class Nvrtc {
  readonly path: string;
  /** major.minor */
  readonly version: string;
  readonly #symbols: Symbols;

  private constructor(path: string, library: Symbols) {
    const [major, minor] = [new Int32Array(1), new Int32Array(1)];
    this.#symbols = library;
    this.#check(library.nvrtcVersion(ptr(major), ptr(minor)), "asking for its version");
    this.version = `${major[0]}.${minor[0]}`;
    this.path = path;
  }

  /** `given` is a file or folder that replaces the usual places. */
  static search(given: string | undefined): ToolkitSearch<Nvrtc> {
    return openToolkitLibrary("nvrtc", given, (name) => {
      const library = dlopen(name, symbols);
      const path = openedPath(name) ?? name;
      if (isAbsolute(path)) openBuiltins(path);
      return new Nvrtc(path, library.symbols);
    });
  }

  /** Machine code (a cubin). Throws NativeError with the compiler's own words. */
  compile({ source, kernel, options }: CompileRequest): Uint8Array {
    const text = cString(source);
    const expression = cString(kernel);
    const program = new Uint32Array(2);
    this.#check(
      this.#symbols.nvrtcCreateProgram(ptr(program), ptr(text), null, 0, null, null),
      "taking the source",
    );
    const handle = numberOf(program) as Pointer;
    try {
      this.#check(this.#symbols.nvrtcAddNameExpression(handle, ptr(expression)), `taking ${kernel}`);
      const texts = options.map(cString);
      const pointers = Uint32Array.from(texts.flatMap((option) => wordsOf(ptr(option))));
      const list = pointers.length === 0 ? null : ptr(pointers);
      const status = this.#symbols.nvrtcCompileProgram(handle, texts.length, list);
      if (status !== 0) throw this.#error(status, `compiling ${kernel}`, this.#log(handle));
      const code = this.#bytes(handle, "nvrtcGetCUBINSize", "nvrtcGetCUBIN");
      if (code.length === 0) throw new NativeError("unsupported", `NVRTC gave no machine code for ${kernel}`);
      return code;
    } finally {
      this.#symbols.nvrtcDestroyProgram(ptr(program));
    }
  }

  #log(handle: Pointer): string {
    const bytes = this.#bytes(handle, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
    return Buffer.from(bytes).toString("utf8").replace(/\0+$/, "").trim();
  }

  #bytes(
    handle: Pointer,
    sizeOf: "nvrtcGetCUBINSize" | "nvrtcGetProgramLogSize",
    read: "nvrtcGetCUBIN" | "nvrtcGetProgramLog",
  ): Uint8Array {
    const size = new Uint32Array(2);
    this.#check(this.#symbols[sizeOf](handle, ptr(size)), sizeOf);
    const bytes = new Uint8Array(numberOf(size));
    if (bytes.length > 0) this.#check(this.#symbols[read](handle, ptr(bytes)), read);
    return bytes;
  }

  #check(status: number, doing: string): void {
    if (status !== 0) throw this.#error(status, doing, "");
  }

  #error(status: number, doing: string, log: string): NativeError {
    const name = new CString(this.#symbols.nvrtcGetErrorString(status) as Pointer).toString();
    return new NativeError("unsupported", `NVRTC failed ${doing}: ${name}${log === "" ? "" : `\n${log}`}`);
  }
}
