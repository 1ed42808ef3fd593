/** Activation buffers: one a name, shared by whoever asks for the same shape. */
import { afterAll, describe, expect, test } from "bun:test";
import { ActivationBuffers } from "../../src/layers/tensor";
import { openCpuDevice } from "../support/cpu-device";

const device = openCpuDevice();
afterAll(() => device.close());

describe("buffers", () => {
  test("of one name are one buffer", () => {
    const buffers = new ActivationBuffers(device, 16, "float32");
    const first = buffers.tensor("normed", 10);
    expect(first).toMatchObject({ columns: 10, stride: 10, dtype: "float32" });
    expect(buffers.tensor("normed", 10)).toBe(first);
    expect(buffers.tensor("stream", 10).address).not.toBe(first.address);
    expect(buffers.totalBytes).toBe(2 * 16 * 10 * 4);
  });

  test("take another dtype or number of rows when asked to", () => {
    const buffers = new ActivationBuffers(device, 16, "float32");
    buffers.tensor("ids", 3, { dtype: "int32", rows: 2 });
    buffers.tensor("half", 3, { dtype: "bfloat16" });
    expect(buffers.totalBytes).toBe(2 * 3 * 4 + 16 * 3 * 2);
  });

  test("asked for in two shapes are a broken promise", () => {
    const buffers = new ActivationBuffers(device, 16, "float32");
    buffers.tensor("normed", 10);
    expect(() => buffers.tensor("normed", 11)).toThrow("'normed'");
    expect(() => buffers.tensor("normed", 10, { dtype: "int32" })).toThrow("'normed'");
    expect(() => buffers.tensor("normed", 10, { rows: 17 })).toThrow("'normed'");
  });

  test("of scratch are shared by ops that need the same amount, and absent where none is needed", () => {
    const buffers = new ActivationBuffers(device, 16, "float32");
    expect(buffers.scratch("attention", 0)).toBe(0);
    const scratch = buffers.scratch("attention", 1001);
    expect(scratch).toBeGreaterThan(0);
    expect(buffers.scratch("attention", 1001)).toBe(scratch);
    expect(buffers.scratch("attention", 2000)).not.toBe(scratch);
    expect(buffers.scratch("moe", 1001)).not.toBe(scratch);
  });
});
