/**
 * From a config.json to a model: files that are none, types
 * that are not supported, and what is worth telling.
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../src/models/config-reader";
import { createModel, readConfigFile } from "../../src/models/registry";
import { smallConfig, smallMixture } from "../support/decoder-config";
import { expectError } from "../support/expect-error";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const model = (changes: JsonObject, base: JsonObject = smallConfig) =>
  createModel({ ...base, ...changes }, "config.json");

describe("a configuration file", () => {
  test("is read as an object", () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, "config.json"), JSON.stringify(smallConfig));
    expect(readConfigFile(directory)).toEqual(smallConfig);
  });

  test("that is absent, no JSON or no object is refused with its path", () => {
    const directory = temporaryDirectory();
    const path = join(directory, "config.json");
    expectError(() => readConfigFile(directory), "invalid_config", path);
    for (const text of ["", "{", "[]", "null", '"llama"']) {
      writeFileSync(path, text);
      expectError(() => readConfigFile(directory), "invalid_config", path);
    }
  });
});

describe("a model type", () => {
  test("that is not supported is refused with those that are", () => {
    for (const model_type of ["gpt2", "mamba", "toString", ""]) {
      expectError(
        () => model({ model_type }),
        "unsupported_model",
        `'${model_type}'`,
        "llama, mistral, qwen2, qwen3, qwen3_moe",
      );
    }
    expectError(() => model({ model_type: undefined }), "unsupported_config", "model_type is missing");
  });
});

describe("remarks", () => {
  test("name options that nobody read, those of sections too", () => {
    expect(model({}).remarks).toEqual([]);
    expect(model({ torch_dtype: "bfloat16", eos_token_id: [1, 2], use_cache: true }).remarks).toEqual([]);
    const odd = { attention_sink_size: 4, rope_scaling: { type: "linear", factor: 2, fraktor: 3 } };
    expect(model(odd).remarks).toEqual(["config.json: ignored attention_sink_size, rope_scaling.fraktor"]);
  });

  test("name defaults that were taken", () => {
    expect(model({ model_type: "mistral" }).remarks).toEqual([
      "config.json: sliding_window is not set: 4096, the architecture's own, is used",
    ]);
  });

  test("are none for the reference configurations", () => {
    const reference = join(import.meta.dir, "../fixtures/reference");
    for (const name of ["llama", "mistral-swa", "qwen3", "qwen3-moe"]) {
      expect(createModel(readConfigFile(join(reference, name)), name).remarks).toEqual([]);
    }
  });
});

describe("sizes", () => {
  test("count every parameter of a dense model once", () => {
    const untied = model({ tie_word_embeddings: false });
    const layer = 48 * (48 + 24 + 24) + 48 * 48 + 3 * 48 * 80 + 2 * 48;
    expect(untied.numParameters).toBe(2 * 97 * 48 + 2 * layer + 48);
    expect(untied.weightBytes("bfloat16")).toBe(2 * untied.numParameters);
  });

  test("count every expert of a mixture", () => {
    const moe = model({ tie_word_embeddings: false }, smallMixture);
    const attention = 48 * (48 + 24 + 24) + 48 * 48 + 2 * 12;
    const layer = attention + 5 * 48 + 5 * 3 * 48 * 24 + 2 * 48;
    expect(moe.numParameters).toBe(2 * 97 * 48 + 2 * layer + 48);
  });
});
