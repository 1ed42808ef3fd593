/** The choice of a kernel's page size for a group. */
import { describe, expect, test } from "bun:test";
import { type KernelPageRequest, kernelPageSizeFor } from "../../src/mapping/kernel-page-sizes";
import { expectError } from "../support/expect-error";

function sizeOf(blockGranularity: number, more: Partial<KernelPageRequest> = {}): number {
  return kernelPageSizeFor({ groupId: "full_attention", blockGranularity, device: "cuda", ...more });
}

describe("on a GPU", () => {
  test("the largest supported size that divides the block's span is taken", () => {
    const expected = { 16: 16, 32: 32, 48: 16, 64: 64, 96: 32, 128: 128, 192: 64, 256: 128, 1536: 128 };
    for (const [span, size] of Object.entries(expected)) expect(sizeOf(Number(span))).toBe(size);
  });

  test("a span that no size divides is refused, naming the group", () => {
    for (const span of [1, 8, 24, 100]) {
      expectError(() => sizeOf(span), "invalid_page_size", "'full_attention'", `${span} tokens`);
    }
  });
});

describe("on the CPU", () => {
  test("a block is one page, whatever its span", () => {
    for (const span of [1, 5, 16, 100]) expect(sizeOf(span, { device: "cpu" })).toBe(span);
  });
});

describe("an override", () => {
  test("is taken on both when it divides the span", () => {
    expect(sizeOf(64, { override: 16 })).toBe(16);
    expect(sizeOf(64, { device: "cpu", override: 8 })).toBe(8);
  });

  test("is refused when it does not", () => {
    for (const override of [48, 0, -16, 128, 1.5]) {
      expectError(() => sizeOf(64, { override }), "invalid_page_size", `${override}`, "'full_attention'");
    }
  });
});
