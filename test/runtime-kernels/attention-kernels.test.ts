/** Which head dimensions get kernels of their own on which card, and what happens without a compiler. */
import { describe, expect, test } from "bun:test";
import { type DeviceInfo, dtypes } from "../../ffi/device";
import { NativeError } from "../../ffi/errors";
import {
  type AttentionKernelShape,
  AttentionKernels,
  type CompileKernel,
  wantedKernels,
} from "../../src/runtime-kernels/attention-kernels";

function shape(headDim: number, other: Partial<AttentionKernelShape> = {}): AttentionKernelShape {
  const vHeadDim = other.vHeadDim ?? headDim;
  const rowBytes = 2 * 64;
  return {
    headDim,
    vHeadDim,
    dtype: "bfloat16",
    kvDtype: "bfloat16",
    pageSize: 64,
    kPageStrideBytes: headDim * rowBytes,
    vPageStrideBytes: vHeadDim * rowBytes,
    ...other,
  };
}

const expressions = (wanted: AttentionKernelShape, architecture: string) =>
  wantedKernels(wanted, architecture).map(({ expression }) => expression);

/** A card that notes what it is handed. */
function fakeCard(kind: "cpu" | "cuda", features: string) {
  const loaded: unknown[] = [];
  return {
    loaded,
    kind,
    info: () => ({ features }) as DeviceInfo,
    loadAttentionKernel: (image: Uint8Array, values: object) => void loaded.push({ image, ...values }),
  };
}

const compileAll: CompileKernel = (kernel) => ({ image: Buffer.from(kernel), isFromCache: false });
const noCompiler: CompileKernel = () => {
  throw new NativeError("unsupported", "NVRTC was not found\nin two lines");
};
let now = 0;
const clock = () => now;
const kernelsOn = (card: ReturnType<typeof fakeCard>, compile: CompileKernel) =>
  new AttentionKernels(card, () => compile, clock);

describe("wanted kernels", () => {
  test("are none for dimensions that the library has", () => {
    for (const dim of [64, 128, 192, 256]) {
      for (const architecture of ["sm_80", "sm_90a", "sm_120"]) {
        expect(wantedKernels(shape(dim), architecture)).toEqual([]);
        expect(wantedKernels(shape(dim, { dtype: "float32", kvDtype: "float32" }), architecture)).toEqual([]);
      }
    }
  });

  test("are exact tiles for dimensions between them", () => {
    expect(expressions(shape(80), "sm_80")).toEqual(["pagedDecodeKernel<80, 3>", "pagedPrefillKernel<80>"]);
    expect(expressions(shape(72, { vHeadDim: 40 }), "sm_80")).toEqual([
      "pagedDecodeKernel<80, 3>",
      "pagedPrefillKernel<80>",
    ]);
    expect(expressions(shape(160), "sm_89")).toEqual([
      "pagedDecodeKernel<160, 2>",
      "pagedPrefillKernel<160>",
    ]);
    expect(expressions(shape(120), "sm_80")).toEqual([]); // would be as wide as the library's
  });

  test("are none where Hopper's copy engine pads for nothing", () => {
    expect(expressions(shape(80), "sm_90a")).toEqual([]);
    expect(expressions(shape(80, { pageSize: 8 }), "sm_90a")).not.toEqual([]);
  });

  test("are scalar beyond 256, for the element types and the alignment at hand", () => {
    expect(wantedKernels(shape(512), "sm_90a")).toEqual([
      {
        expression: "pagedAttentionScalarKernel<Bf16, Bf16, 8, 512>",
        kind: "scalar",
        dim: 512,
        isWide: true,
      },
    ]);
    const mixed = shape(300, { dtype: "float32", vHeadDim: 257 });
    expect(expressions(mixed, "sm_80")).toEqual(["pagedAttentionScalarKernel<float, Bf16, 1, 384>"]);
  });
});

describe("providing kernels", () => {
  test("loads each once, however many layers ask", () => {
    const card = fakeCard("cuda", "sm_80 ptx80");
    const kernels = kernelsOn(card, compileAll);
    for (let layer = 0; layer < 3; layer++) kernels.provide(shape(96));
    kernels.provide(shape(512));
    expect(card.loaded).toHaveLength(3);
    expect(card.loaded).toContainEqual({
      image: Buffer.from("pagedDecodeKernel<96, 3>"),
      kind: 1,
      dim: 96,
      stages: 3,
      dtype: dtypes.bfloat16,
      kvDtype: dtypes.bfloat16,
      isWide: 0,
    });
    expect(kernels.remarks()).toEqual([
      "attention kernels for this model's head dimension: 3 compiled in 0.0 s, 0 from the cache",
    ]);
  });

  test("tells compiled from cached, and how long compiling took", () => {
    const compile: CompileKernel = (kernel) => {
      now += 1500;
      return { image: Buffer.from(kernel), isFromCache: kernel.includes("Prefill") };
    };
    const kernels = kernelsOn(fakeCard("cuda", "sm_80"), compile);
    kernels.provide(shape(96));
    expect(kernels.remarks()[0]).toContain("1 compiled in 1.5 s, 1 from the cache");
  });

  test("asks for nothing on the CPU", () => {
    const card = fakeCard("cpu", "avx2");
    const kernels = kernelsOn(card, noCompiler);
    kernels.provide(shape(512));
    expect(card.loaded).toEqual([]);
    expect(kernels.remarks()).toEqual([]);
  });

  test("falls back to padded kernels and says so where nothing compiles", () => {
    const kernels = kernelsOn(fakeCard("cuda", "sm_80"), noCompiler);
    kernels.provide(shape(96));
    expect(kernels.remarks()).toEqual(["attention runs on padded kernels: NVRTC was not found"]);
  });

  test("refuses a model that no kernel takes, with the reason", () => {
    const kernels = kernelsOn(fakeCard("cuda", "sm_90a"), noCompiler);
    expect(() => kernels.provide(shape(512))).toThrow(
      /head dimension 512 needs a kernel: NVRTC was not found/,
    );
  });
});
