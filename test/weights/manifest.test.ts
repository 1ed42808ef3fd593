/**
 * The check that a checkpoint holds exactly what a model needs, in one sentence that names file and tensor.
 */
import { describe, expect, test } from "bun:test";
import { checkManifest, type RequiredTensor } from "../../src/weights/manifest";
import type { TensorInfo, TensorSource } from "../../src/weights/tensor-source";
import { expectError } from "../support/expect-error";

/** A source that holds these tensors; `undefined` can make up any. */
function sourceOf(tensors: readonly TensorInfo[] | undefined): TensorSource {
  return {
    description: "2 files in the test",
    list: () => tensors,
    find: (name) => tensors?.find((tensor) => tensor.name === name),
    data: () => {
      throw new Error("a manifest is checked before any byte is read");
    },
    [Symbol.dispose]: () => {},
  };
}

const info = (name: string, shape: readonly number[], dtype = "BF16"): TensorInfo => ({
  name,
  shape,
  dtype,
  origin: "shard-2.safetensors",
});

const required: readonly RequiredTensor[] = [
  { name: "a.weight", shape: [4, 2] },
  { name: "b.weight", shape: [4] },
  { name: "b.bias", shape: [4], optional: true },
];
const held = [info("a.weight", [4, 2]), info("b.weight", [4], "F32")];

const check = (
  tensors: readonly TensorInfo[] | undefined,
  ignored: (name: string) => boolean = () => false,
) => checkManifest(sourceOf(tensors), required, ignored);

const refused = (tensors: readonly TensorInfo[], ...texts: string[]) =>
  expectError(() => check(tensors), "invalid_checkpoint", ...texts);

describe("a checkpoint", () => {
  test("with exactly what is needed passes, optional tensors or not", () => {
    check(held);
    check([...held, info("b.bias", [4], "F16")]);
  });

  test("that can make anything up passes", () => check(undefined));

  test("that lacks a tensor is refused", () => {
    refused(held.slice(1), "'a.weight'", "missing from 2 files in the test");
  });

  test("with a tensor of another shape is refused with both shapes", () => {
    const texts = ["shard-2.safetensors", "'a.weight'", "[2, 4]", "[4, 2]"];
    refused([info("a.weight", [2, 4]), ...held.slice(1)], ...texts);
    refused([info("a.weight", [8]), ...held.slice(1)], "[8]", "[4, 2]");
    refused([...held, info("b.bias", [5])], "'b.bias'", "[5]");
  });

  test("with integers where numbers are needed is refused", () => {
    for (const dtype of ["I32", "F8_E4M3", "BOOL"]) {
      refused(
        [info("a.weight", [4, 2], dtype), ...held.slice(1)],
        "shard-2.safetensors",
        "'a.weight'",
        dtype,
      );
    }
  });

  test("with a tensor that belongs to nothing is refused, unless it is a known leftover", () => {
    const extra = [...held, info("c.weight", [1])];
    refused(extra, "shard-2.safetensors", "'c.weight'", "belongs to nothing");
    check(extra, (name) => name === "c.weight");
  });

  test("with many faults is refused in one sentence that counts them", () => {
    const message = refused([info("a.weight", [1]), info("z", [1])], "'a.weight'", "and 2 more such faults");
    expect(message).not.toContain("\n");
  });
});
