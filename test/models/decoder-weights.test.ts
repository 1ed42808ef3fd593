/**
 * The tensors each option asks of a checkpoint, against the
 * architectures' conventions written out independently.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../src/models/config-reader";
import { createModel } from "../../src/models/registry";
import { openCheckpoint } from "../../src/weights/checkpoint";
import { smallConfig, smallMixture } from "../support/decoder-config";
import { decoderTensors, type TensorShapes } from "../support/decoder-tensors";
import { expectError } from "../support/expect-error";
import { float32Tensor, writeSafetensors } from "../support/safetensors-file";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

/** A checkpoint of zeros in these shapes. */
function checkpointOf(shapes: TensorShapes): string {
  const directory = temporaryDirectory();
  mkdirSync(directory, { recursive: true });
  const tensors = Object.entries(shapes).map(([name, shape]) => {
    const count = shape.reduce((product, extent) => product * extent, 1);
    return [name, float32Tensor(shape, Array(count).fill(0))];
  });
  writeSafetensors(join(directory, "model.safetensors"), Object.fromEntries(tensors));
  return directory;
}

function check(config: JsonObject, shapes: TensorShapes): void {
  using source = openCheckpoint(checkpointOf(shapes));
  createModel(config, "config.json").checkWeights(source);
}

const untied = { tie_word_embeddings: false };
const options: Readonly<Record<string, JsonObject>> = {
  "plain llama": { ...smallConfig, ...untied },
  "tied llama": { ...smallConfig, tie_word_embeddings: true },
  "llama with all biases": { ...smallConfig, ...untied, attention_bias: true, mlp_bias: true },
  "llama with wide heads": { ...smallConfig, ...untied, head_dim: 20, num_key_value_heads: 1 },
  mistral: { ...smallConfig, ...untied, model_type: "mistral", sliding_window: 8 },
  qwen2: { ...smallConfig, ...untied, model_type: "qwen2" },
  qwen3: { ...smallConfig, ...untied, model_type: "qwen3", attention_bias: true },
  mixture: { ...smallMixture, ...untied },
  "mixture in some layers": { ...smallMixture, ...untied, num_hidden_layers: 3, mlp_only_layers: [1] },
};

describe("a checkpoint", () => {
  for (const [name, config] of Object.entries(options)) {
    test(`of ${name} holds exactly what the model asks for`, () => check(config, decoderTensors(config)));
  }

  test("lacks nothing without being refused, whichever tensor it is", () => {
    const config = options.qwen3 as JsonObject;
    for (const name of Object.keys(decoderTensors(config))) {
      const { [name]: _, ...rest } = decoderTensors(config);
      expectError(() => check(config, rest), "invalid_checkpoint", `'${name}' is missing`);
    }
  });

  test("is refused with biases that the options do not name, and for a shape that is turned", () => {
    const config = options["plain llama"] as JsonObject;
    const shapes = decoderTensors(config);
    const bias = "model.layers.0.self_attn.q_proj.bias";
    expectError(
      () => check(config, { ...shapes, [bias]: [48] }),
      "invalid_checkpoint",
      `'${bias}'`,
      "nothing",
    );
    const up = "model.layers.1.mlp.up_proj.weight";
    expectError(
      () => check(config, { ...shapes, [up]: [48, 80] }),
      "invalid_checkpoint",
      `'${up}'`,
      "[80, 48]",
    );
  });

  test("may hold the inverse frequencies that some exporters leave behind", () => {
    const config = options["plain llama"] as JsonObject;
    const leftover = { "model.layers.0.self_attn.rotary_emb.inv_freq": [6] };
    expect(() => check(config, { ...decoderTensors(config), ...leftover })).not.toThrow();
  });

  test("must be checked before it is loaded", () => {
    const model = createModel(smallConfig, "config.json");
    expectError(() => model.build({} as Parameters<typeof model.build>[0]), "unchecked_weights");
  });
});
