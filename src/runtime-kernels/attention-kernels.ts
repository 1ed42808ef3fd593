/**
 * Which attention kernels a layer wants compiled for its head dimension, and their loading. The library's own
 * take every dimension up to 256, those between multiples of 64 padded.
 */
import { type Device, type Dtype, dtypes } from "../../ffi/device";
import { GranaryError } from "../assert";
import type { CompiledKernel } from "./kernel-compiler";

export interface AttentionKernelShape {
  readonly headDim: number;
  readonly vHeadDim: number;
  readonly dtype: Dtype;
  readonly kvDtype: Dtype;
  readonly pageSize: number;
  readonly kPageStrideBytes: number;
  readonly vPageStrideBytes: number;
}

/** Compiles a kernel by its C++ name; throws NativeError where this machine cannot. */
export type CompileKernel = (kernel: string) => CompiledKernel;

type AttentionDevice = Pick<Device, "kind" | "info" | "loadAttentionKernel">;

const kinds = { scalar: 0, decode: 1, prefill: 2 } as const;
const maxAheadDim = 256;
const aheadStep = 64;
/** Up to here three stages of the decode kernel's rings fit every card that it runs on. */
const maxDeepDim = 112;

interface WantedKernel {
  readonly expression: string;
  readonly kind: keyof typeof kinds;
  readonly dim: number;
  readonly stages?: number;
  readonly isWide?: boolean;
}

const alignUp = (value: number, step: number) => Math.ceil(value / step) * step;
const elementTypes: Readonly<Partial<Record<Dtype, string>>> = { float32: "float", bfloat16: "Bf16" };

/** Rows of K and V that can be moved 16 bytes at a time. */
function isWide(shape: AttentionKernelShape): boolean {
  const { headDim, vHeadDim, kPageStrideBytes, vPageStrideBytes } = shape;
  return (
    headDim % 8 === 0 && vHeadDim % 8 === 0 && kPageStrideBytes % 16 === 0 && vPageStrideBytes % 16 === 0
  );
}

/** Kernels that the library lacks, or has only padded, for this shape on this card. */
export function wantedKernels(shape: AttentionKernelShape, architecture: string): readonly WantedKernel[] {
  const dim = Math.max(shape.headDim, shape.vHeadDim);
  if (dim > maxAheadDim) {
    const width = isWide(shape) ? 8 : 1;
    const padded = alignUp(dim, 128);
    const types = `${elementTypes[shape.dtype]}, ${elementTypes[shape.kvDtype]}`;
    const expression = `pagedAttentionScalarKernel<${types}, ${width}, ${padded}>`;
    return [{ expression, kind: "scalar", dim: padded, isWide: width > 1 }];
  }
  const isTiled = shape.dtype === "bfloat16" && shape.kvDtype === "bfloat16" && isWide(shape);
  // Hopper's copy engine fills the padding by itself and reads nothing for it.
  const isCopied = architecture === "sm_90a" && shape.pageSize % 16 === 0;
  if (dim % aheadStep === 0 || !isTiled || isCopied) return [];
  const exact = alignUp(dim, dim <= 128 ? 16 : 32);
  if (exact % aheadStep === 0) return [];
  const stages = exact <= maxDeepDim ? 3 : 2;
  return [
    { expression: `pagedDecodeKernel<${exact}, ${stages}>`, kind: "decode", dim: exact, stages },
    { expression: `pagedPrefillKernel<${exact}>`, kind: "prefill", dim: exact },
  ];
}

export class AttentionKernels {
  readonly #device: AttentionDevice;
  readonly #architecture: string;
  readonly #compile: CompileKernel;
  readonly #clock: () => number;
  readonly #loaded = new Set<string>();
  #numCached = 0;
  #compileMs = 0;
  #failure: string | undefined;

  /** `compilation` gives the compiler for an architecture such as sm_90a. */
  constructor(
    device: AttentionDevice,
    compilation: (architecture: string) => CompileKernel,
    clock: () => number,
  ) {
    this.#device = device;
    this.#architecture = device.info().features.split(" ")[0] ?? "";
    this.#compile = compilation(this.#architecture);
    this.#clock = clock;
  }

  /**
   * Loads what the shape wants, before its op is made. Throws unsupported_model where the library has no
   * kernel at all and none can be compiled; a padded one serves otherwise.
   */
  provide(shape: AttentionKernelShape): void {
    if (this.#device.kind === "cpu") return;
    for (const kernel of wantedKernels(shape, this.#architecture)) {
      const id = `${kernel.expression} ${kernel.kind}`;
      if (this.#loaded.has(id)) continue;
      try {
        this.#load(kernel, shape);
        this.#loaded.add(id);
      } catch (error) {
        const reason = (error as Error).message;
        if (kernel.kind === "scalar") {
          const dim = Math.max(shape.headDim, shape.vHeadDim);
          throw new GranaryError("unsupported_model", `head dimension ${dim} needs a kernel: ${reason}`);
        }
        this.#failure = reason.split("\n")[0];
      }
    }
  }

  /** For the start-up report; nothing when the library's own kernels served. */
  remarks(): readonly string[] {
    if (this.#failure !== undefined) return [`attention runs on padded kernels: ${this.#failure}`];
    if (this.#loaded.size === 0) return [];
    const numCompiled = this.#loaded.size - this.#numCached;
    const seconds = (this.#compileMs / 1000).toFixed(1);
    const origin = `${numCompiled} compiled in ${seconds} s, ${this.#numCached} from the cache`;
    return [`attention kernels for this model's head dimension: ${origin}`];
  }

  #load(kernel: WantedKernel, shape: AttentionKernelShape): void {
    const startedAt = this.#clock();
    const { image, isFromCache } = this.#compile(kernel.expression);
    if (isFromCache) this.#numCached++;
    else this.#compileMs += this.#clock() - startedAt;
    this.#device.loadAttentionKernel(image, {
      kind: kinds[kernel.kind],
      dim: kernel.dim,
      stages: kernel.stages ?? 0,
      dtype: dtypes[shape.dtype],
      kvDtype: dtypes[shape.kvDtype],
      isWide: kernel.isWide ? 1 : 0,
    });
  }
}
