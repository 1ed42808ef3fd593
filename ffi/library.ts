/** Loads a kernel library and checks that it speaks our ABI; holds the symbol table and nothing else. */
import { CString, dlopen, FFIType, type Pointer } from "bun:ffi";
import { layoutOf } from "./argument-block";
import {
  attentionKernelBlock,
  initBlock,
  type OpName,
  opSchemas,
  samplingParamsBlock,
  structNumbers,
  synthesizeBlock,
  weightBlock,
} from "./blocks";
import { NativeError, nativeStatus } from "./errors";

export const abiVersion = 2;
/** Two fixed char arrays follow the typed fields of GranaryDeviceInfo. */
export const deviceInfoTextBytes = 128;

const { ptr, i32, i64, f64 } = FFIType;
const statusOf = (...args: FFIType[]) => ({ args, returns: i32 }) as const;

const coreSymbols = {
  granary_abi_version: statusOf(),
  granary_sizeof: statusOf(i32),
  granary_last_error: { args: [], returns: ptr },
  granary_probe: statusOf(i32),
  granary_init: statusOf(ptr),
  granary_shutdown: statusOf(),
  granary_open_cublaslt: statusOf(ptr),
  granary_device_info: statusOf(ptr),
  granary_alloc: { args: [i64], returns: ptr },
  granary_free: statusOf(ptr),
  granary_alloc_pinned: { args: [i64], returns: ptr },
  granary_free_pinned: statusOf(ptr),
  granary_copy: statusOf(ptr, ptr, i64, i32),
  granary_synchronize: statusOf(),
  granary_event_create: { args: [i32], returns: ptr },
  granary_event_destroy: statusOf(ptr),
  granary_event_record: statusOf(ptr),
  granary_event_query: statusOf(ptr),
  granary_event_wait: statusOf(ptr),
  granary_event_elapsed_ns: { args: [ptr, ptr], returns: f64 },
  granary_capture_begin: statusOf(),
  granary_capture_end: { args: [], returns: ptr },
  granary_graph_launch: statusOf(ptr),
  granary_graph_destroy: statusOf(ptr),
  granary_weight_bytes: { args: [ptr], returns: FFIType.i64_fast },
  granary_prepare_weight: statusOf(ptr),
  granary_weight_is_plain: statusOf(i32),
  granary_synthesize: statusOf(ptr),
  granary_load_attention_kernel: statusOf(ptr),
  granary_attention_scratch_bytes: { args: [ptr], returns: FFIType.i64_fast },
  granary_moe_scratch_bytes: { args: [ptr], returns: FFIType.i64_fast },
  granary_sample_scratch_bytes: { args: [ptr], returns: FFIType.i64_fast },
} as const;

/** The C symbol of an op: `rmsNorm` is `granary_rms_norm`. */
export function symbolOf(op: OpName): string {
  return `granary_${op.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;
}

/** Takes the address of an argument block; returns a status. */
export type OpFunction = (block: Pointer) => number;

export type CoreSymbols = ReturnType<typeof dlopen<typeof coreSymbols>>["symbols"];

export interface KernelLibrary {
  readonly path: string;
  readonly core: CoreSymbols;
  readonly ops: Readonly<Record<OpName, OpFunction>>;
  /** Text of the calling thread's last failure. */
  lastError(): string;
  /** Throws a NativeError with the library's own text unless `status` is 0. */
  check(status: number): void;
  close(): void;
}

const expectedBytes: Readonly<Record<number, number>> = {
  [structNumbers.init]: layoutOf(initBlock).bytes,
  [structNumbers.weight]: layoutOf(weightBlock).bytes,
  [structNumbers.synthesize]: layoutOf(synthesizeBlock).bytes,
  [structNumbers.attentionKernel]: layoutOf(attentionKernelBlock).bytes,
  [structNumbers.samplingParams]: layoutOf(samplingParamsBlock).bytes,
  ...Object.fromEntries(
    Object.entries(opSchemas).map(([name, schema]) => [
      structNumbers[name as OpName],
      layoutOf(schema).bytes,
    ]),
  ),
};

function checkAbi(core: CoreSymbols, path: string): void {
  const version = core.granary_abi_version();
  if (version !== abiVersion) {
    throw new NativeError("unsupported", `${path}: ABI version ${version}, this program needs ${abiVersion}`);
  }
  for (const [number, bytes] of Object.entries(expectedBytes)) {
    const actual = core.granary_sizeof(Number(number));
    if (actual !== bytes) {
      throw new NativeError(
        "unsupported",
        `${path}: struct ${number} has ${actual} bytes, expected ${bytes}`,
      );
    }
  }
}

/** Opens the library at a real path of the file system. */
export function loadKernelLibrary(path: string): KernelLibrary {
  const opNames = Object.keys(opSchemas) as OpName[];
  const opTable = Object.fromEntries(opNames.map((name) => [symbolOf(name), statusOf(ptr)]));
  const library = dlopen(path, { ...coreSymbols, ...opTable });
  const core = library.symbols as unknown as CoreSymbols;
  checkAbi(core, path);
  const all = library.symbols as unknown as Record<string, OpFunction>;
  const ops = Object.fromEntries(opNames.map((name) => [name, all[symbolOf(name)]])) as Record<
    OpName,
    OpFunction
  >;
  const lastError = () => {
    const text = core.granary_last_error();
    return text === null ? "" : new CString(text).toString();
  };
  return {
    path,
    core,
    ops,
    lastError,
    check(status) {
      if (status !== 0) throw new NativeError(nativeStatus(status), lastError());
    },
    close: () => library.close(),
  };
}
