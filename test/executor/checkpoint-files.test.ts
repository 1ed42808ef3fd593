/**
 * The same weights from files of every layout: one file or shards,
 * any dtype, any alignment; the answers are the same bits.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createModel, readConfigFile } from "../../src/models/registry";
import { openCheckpoint } from "../../src/weights/checkpoint";
import { openSynthetic } from "../../src/weights/synthetic";
import type { TensorSource } from "../../src/weights/tensor-source";
import { smallMixture } from "../support/decoder-config";
import { decoderTensors } from "../support/decoder-tensors";
import { runAlone } from "../support/hand-driven-sequence";
import { writeOptionCase } from "../support/option-case";
import {
  bfloat16Tensor,
  type FileTensor,
  float32Tensor,
  writeSafetensors,
  writeShards,
} from "../support/safetensors-file";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";
import { ToyModel } from "../support/toy-model";

removeTemporaryDirectories();

const config = { ...smallMixture, tie_word_embeddings: false, attention_bias: true, vocab_size: 53 };
const prompt = Int32Array.from({ length: 21 }, (_, i) => (i * 11) % 53);
const recipeDirectory = temporaryDirectory();
const weights = writeOptionCase(recipeDirectory, config);

type Encode = (shape: readonly number[], values: readonly number[]) => FileTensor;

function tensorsAs(encode: Encode): Record<string, FileTensor> {
  return Object.fromEntries(
    Object.entries(decoderTensors(config)).map(([name, shape]) => [name, encode(shape, [...weights(name)])]),
  );
}

function directoryWith(write: (directory: string) => void): string {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, "config.json"), JSON.stringify(config));
  write(directory);
  return directory;
}

function answer(directory: string, source: TensorSource): { logprobs: string; tokens: readonly number[] } {
  using closed = source;
  using model = new ToyModel(createModel(readConfigFile(directory), directory), closed, {
    prefixGranularity: 16,
  });
  const { logprobs, generated } = runAlone(model, prompt, { numTokens: 4 });
  const bytes = Buffer.concat(logprobs.map((row) => new Uint8Array(row.buffer)));
  return { logprobs: Bun.SHA256.hash(bytes, "hex"), tokens: generated };
}

const expected = answer(recipeDirectory, openSynthetic(recipeDirectory));

const layouts: Readonly<Record<string, (directory: string) => void>> = {
  "one file of bfloat16": (directory) =>
    writeSafetensors(join(directory, "model.safetensors"), tensorsAs(bfloat16Tensor)),
  "one file of float32": (directory) =>
    writeSafetensors(join(directory, "model.safetensors"), tensorsAs(float32Tensor)),
  "data at an odd byte": (directory) =>
    writeSafetensors(join(directory, "model.safetensors"), tensorsAs(bfloat16Tensor), { misalignment: 1 }),
  "float32 at an odd byte": (directory) =>
    writeSafetensors(join(directory, "model.safetensors"), tensorsAs(float32Tensor), { misalignment: 3 }),
  "a shard a third of the tensors, dtypes mixed": (directory) => {
    const shards: Record<string, Record<string, FileTensor>> = {};
    const narrow = tensorsAs(bfloat16Tensor);
    Object.entries(tensorsAs(float32Tensor)).forEach(([name, wide], i) => {
      const shard = `model-${i % 3}.safetensors`;
      shards[shard] = { ...shards[shard], [name]: i % 2 === 0 ? wide : (narrow[name] as FileTensor) };
    });
    writeShards(directory, shards);
  },
};

describe("weights from files", () => {
  for (const [name, write] of Object.entries(layouts)) {
    test(`in ${name} give the synthetic weights' answers, bit for bit`, () => {
      const directory = directoryWith(write);
      expect(answer(directory, openCheckpoint(directory))).toEqual(expected);
    });
  }
});
