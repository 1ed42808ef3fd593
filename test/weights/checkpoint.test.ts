/** Checkpoint directories: one file or shards with an index, which must tell the truth in both directions. */
import { describe, expect, test } from "bun:test";
import {
  closeSync,
  ftruncateSync,
  openSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { bytesAt } from "../../ffi/host-memory";
import { hasCheckpoint, openCheckpoint } from "../../src/weights/checkpoint";
import { isSameTensor } from "../../src/weights/same-tensor";
import type { TensorSource } from "../../src/weights/tensor-source";
import { expectError } from "../support/expect-error";
import {
  bfloat16Tensor,
  float32Tensor,
  safetensorsBytes,
  writeIndex,
  writeSafetensors,
  writeShards,
} from "../support/safetensors-file";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const tensor = (value: number) => float32Tensor([2], [value, -value]);
const shardName = (i: number) => `model-0000${i}-of-00003.safetensors`;
const shards = {
  [shardName(1)]: { "a.weight": tensor(1) },
  [shardName(2)]: { "b.weight": tensor(2), "c.weight": tensor(3) },
  [shardName(3)]: { "d.weight": tensor(4) },
};

function shardedDirectory(): string {
  const directory = temporaryDirectory();
  writeShards(directory, shards);
  return directory;
}

function valuesOf(source: TensorSource, name: string): number[] {
  const info = source.find(name);
  const data = source.data(name, info?.shape ?? []);
  if (info === undefined || data.kind !== "mapped") throw new Error(`${name} is not mapped`);
  const bytes = bytesAt(data.address, 4 * info.shape.reduce((product, extent) => product * extent, 1));
  return [...new Float32Array(bytes.slice().buffer)];
}

const refused = (directory: string, ...texts: string[]) =>
  expectError(() => openCheckpoint(directory), "invalid_checkpoint", ...texts);

describe("a single file", () => {
  test("gives its tensors where they lie", () => {
    const directory = temporaryDirectory();
    const path = join(directory, "model.safetensors");
    writeSafetensors(path, { a: tensor(5), b: bfloat16Tensor([1, 2], [1, 2]) });
    using source = openCheckpoint(directory);
    expect(source.list()).toEqual([
      { name: "a", shape: [2], dtype: "F32", origin: path },
      { name: "b", shape: [1, 2], dtype: "BF16", origin: path },
    ]);
    expect(valuesOf(source, "a")).toEqual([5, -5]);
    expect(source.data("b", [1, 2])).toMatchObject({ kind: "mapped", dtype: "bfloat16" });
    expect(source.find("z")).toBeUndefined();
    expect(source.description).toBe(`1 safetensors file in ${directory}`);
  });

  test("is refused where there is none", () => {
    const directory = temporaryDirectory();
    expect(hasCheckpoint(directory)).toBe(false);
    refused(directory, directory, "neither model.safetensors nor");
  });

  test("beyond 4 GiB is read at its end", () => {
    const directory = temporaryDirectory();
    const path = join(directory, "model.safetensors");
    const far = 2 ** 32 + 2 ** 20;
    const header = safetensorsBytes({
      wide: { dtype: "U8", shape: [far], data_offsets: [0, far] },
      far: { dtype: "F32", shape: [2], data_offsets: [far, far + 8] },
    });
    const descriptor = openSync(path, "w");
    ftruncateSync(descriptor, header.length + far + 8);
    writeSync(descriptor, header, 0, header.length, 0);
    const values = new Uint8Array(Float32Array.of(1.5, -2.5).buffer);
    writeSync(descriptor, values, 0, values.length, header.length + far);
    closeSync(descriptor);
    expect(statSync(path).size).toBeGreaterThan(2 ** 32);
    using source = openCheckpoint(directory);
    expect(valuesOf(source, "far")).toEqual([1.5, -2.5]);
  });

  test("with a dtype that nothing computes with is refused when that tensor is asked for", () => {
    const directory = temporaryDirectory();
    const bytes = new Uint8Array(2);
    writeSafetensors(join(directory, "model.safetensors"), {
      a: { dtype: "F8_E4M3", shape: [2], bytes },
    });
    using source = openCheckpoint(directory);
    expectError(() => source.data("a", [2]), "invalid_checkpoint", "model.safetensors", "'a'", "F8_E4M3");
    expectError(() => source.data("z", [2]), "invalid_checkpoint", directory, "'z'");
  });
});

describe("shards", () => {
  test("give all tensors of all files", () => {
    const directory = shardedDirectory();
    using source = openCheckpoint(directory);
    expect(source.list()?.map(({ name, origin }) => [name, origin])).toEqual([
      ["a.weight", join(directory, shardName(1))],
      ["b.weight", join(directory, shardName(2))],
      ["c.weight", join(directory, shardName(2))],
      ["d.weight", join(directory, shardName(3))],
    ]);
    expect(valuesOf(source, "c.weight")).toEqual([3, -3]);
    expect(source.description).toStartWith("3 safetensors files");
  });

  test("may have odd names", () => {
    const directory = temporaryDirectory();
    writeShards(directory, { "model.safetensors-00001-of-00003.safetensors": { a: tensor(1) } });
    using source = openCheckpoint(directory);
    expect(valuesOf(source, "a")).toEqual([1, -1]);
  });

  test("beside a stray second copy leave it alone, and say so", () => {
    const directory = shardedDirectory();
    writeSafetensors(join(directory, "consolidated.safetensors"), { "a.weight": tensor(9) });
    writeFileSync(join(directory, "model.safetensors"), "half a download");
    using source = openCheckpoint(directory);
    expect(valuesOf(source, "a.weight")).toEqual([1, -1]);
    expect(source.description).toEndWith(", ignoring consolidated.safetensors, model.safetensors");
  });

  test("of which one is missing are refused with its name", () => {
    const directory = shardedDirectory();
    rmSync(join(directory, shardName(2)));
    refused(directory, join(directory, shardName(2)), "missing");
  });

  test("of which one is a byte short are refused with file and tensor", () => {
    const directory = shardedDirectory();
    const path = join(directory, shardName(2));
    truncateSync(path, statSync(path).size - 1);
    refused(directory, path, "'c.weight'", "truncated");
  });

  test("that lack a tensor of the index are refused with file and tensor", () => {
    const directory = shardedDirectory();
    const [one, two, three] = [shardName(1), shardName(2), shardName(3)];
    writeIndex(directory, {
      "a.weight": one,
      "e.weight": one,
      "b.weight": two,
      "c.weight": two,
      "d.weight": three,
    });
    refused(directory, join(directory, one), "'e.weight'", "missing");
  });

  test("that hold a tensor the index places elsewhere are refused with both files", () => {
    const directory = shardedDirectory();
    const [one, two, three] = [shardName(1), shardName(2), shardName(3)];
    writeIndex(directory, { "a.weight": one, "b.weight": one, "c.weight": two, "d.weight": three });
    refused(directory, join(directory, two), "'b.weight'", one);
  });

  test("that hold a tensor the index does not know are refused with file and tensor", () => {
    const directory = shardedDirectory();
    writeIndex(directory, { "a.weight": shardName(1), "c.weight": shardName(2), "d.weight": shardName(3) });
    refused(directory, join(directory, shardName(2)), "'b.weight'", "does not know");
  });
});

describe("an index", () => {
  test("that is no index is refused with its name", () => {
    const directory = shardedDirectory();
    const path = join(directory, "model.safetensors.index.json");
    for (const text of ["{", "null", "{}", '{"weight_map": 3}', '{"weight_map": null}']) {
      writeFileSync(path, text);
      refused(directory, path);
    }
  });

  test("that names anything but a file of the directory is refused", () => {
    const directory = shardedDirectory();
    for (const shard of ["../other.safetensors", "/etc/passwd", "a/b", "", ".", "..", 3, null]) {
      writeIndex(directory, { "a.weight": shard });
      refused(directory, "'a.weight'", "no file of this directory");
    }
  });
});

describe("comparing two tensors of a source", () => {
  const directory = temporaryDirectory();
  writeSafetensors(join(directory, "model.safetensors"), {
    a: tensor(1),
    same: tensor(1),
    other: float32Tensor([2], [1, 1]),
    shaped: float32Tensor([2, 1], [1, -1]),
    half: bfloat16Tensor([2], [1, -1]),
  });

  test("finds the same dtype, shape and bytes equal, and nothing else", () => {
    using source = openCheckpoint(directory);
    expect(isSameTensor(source, "a", "same")).toBe(true);
    for (const name of ["other", "shaped", "half", "absent"])
      expect(isSameTensor(source, "a", name)).toBe(false);
  });
});
