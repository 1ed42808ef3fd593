/** Options that the reference cases lack, against a twin in plain loops and double precision. */
import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/models/config-reader";
import { createModel, readConfigFile } from "../../src/models/registry";
import { openSynthetic } from "../../src/weights/synthetic";
import { smallConfig, smallMixture } from "../support/decoder-config";
import { runAlone } from "../support/hand-driven-sequence";
import { naiveLogits } from "../support/naive-decoder";
import { writeOptionCase } from "../support/option-case";
import { Random } from "../support/random";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";
import { ToyModel } from "../support/toy-model";

removeTemporaryDirectories();

const tolerance = 2e-3;
const promptLength = 50;
const numDecoded = 3;

const untied = { ...smallConfig, tie_word_embeddings: false };
const mixture = { ...smallMixture, tie_word_embeddings: false };

const cases: Readonly<Record<string, JsonObject>> = {
  "a plain llama": untied,
  "tied embeddings": { ...smallConfig, tie_word_embeddings: true },
  "attention biases": { ...untied, attention_bias: true },
  "feed-forward biases": { ...untied, mlp_bias: true },
  "all biases and a tied output": {
    ...smallConfig,
    attention_bias: true,
    mlp_bias: true,
    tie_word_embeddings: true,
  },
  "one key-value head": { ...untied, num_key_value_heads: 1 },
  "a key-value head for each query head": { ...untied, num_key_value_heads: 4 },
  "three query heads a key-value head": {
    ...untied,
    num_attention_heads: 6,
    num_key_value_heads: 2,
    hidden_size: 60,
  },
  "a single head": { ...untied, num_attention_heads: 1, num_key_value_heads: 1, hidden_size: 22 },
  "heads wider than the hidden size": { ...untied, head_dim: 36 },
  "heads of an odd half": { ...untied, head_dim: 10 },
  "sizes that are multiples of nothing": {
    ...untied,
    hidden_size: 53,
    intermediate_size: 71,
    head_dim: 14,
    vocab_size: 101,
  },
  "a vocabulary above the power of two": { ...untied, vocab_size: 257 },
  "linear rope": { ...untied, rope_scaling: { type: "linear", factor: 3 } },
  "another theta": { ...untied, rope_theta: 500_000 },
  "half of each head turning": { ...untied, partial_rotary_factor: 0.5 },
  "a large epsilon": { ...untied, rms_norm_eps: 0.1 },
  "one layer": { ...untied, num_hidden_layers: 1 },
  "mistral with a window inside a block": { ...untied, model_type: "mistral", sliding_window: 7 },
  "mistral with a window of one": { ...untied, model_type: "mistral", sliding_window: 1 },
  "mistral without a window": { ...untied, model_type: "mistral", sliding_window: null },
  "qwen2's biases": { ...untied, model_type: "qwen2" },
  "qwen3's head norms": { ...untied, model_type: "qwen3", head_dim: 20 },
  "qwen3 with biases": { ...untied, model_type: "qwen3", attention_bias: true },
  "sliding and full layers, unequally many": {
    ...untied,
    model_type: "qwen3",
    num_hidden_layers: 4,
    layer_types: ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention"],
    sliding_window: 20,
    use_sliding_window: true,
  },
  "a mixture with its weights as they are": mixture,
  "a mixture with weights that sum to one": { ...mixture, norm_topk_prob: true },
  "a mixture of one expert each": { ...mixture, num_experts_per_tok: 1 },
  "a mixture of all experts": { ...mixture, num_experts_per_tok: 5, norm_topk_prob: true },
  "dense layers between mixtures": { ...mixture, num_hidden_layers: 3, mlp_only_layers: [1] },
};

/** Log-probabilities from logits. */
function logSoftmax(logits: Float64Array): Float64Array {
  const largest = Math.max(...logits);
  const sum = logits.reduce((total, value) => total + Math.exp(value - largest), 0);
  return logits.map((value) => value - largest - Math.log(sum));
}

function worstDifference(actual: readonly Float32Array[], expected: readonly Float64Array[]): number {
  expect(actual).toHaveLength(expected.length);
  return actual.reduce((worst, row, i) => {
    const twin = expected[i] as Float64Array;
    const differences = twin.map((value, id) => Math.abs(value - (row[id] as number)));
    return differences.some(Number.isNaN) ? Number.POSITIVE_INFINITY : Math.max(worst, ...differences);
  }, 0);
}

describe("the twin", () => {
  const changes: Readonly<Record<string, JsonObject>> = {
    "attention biases": { attention_bias: false },
    "feed-forward biases": { mlp_bias: false },
    "linear rope": { rope_scaling: undefined },
    "another theta": { rope_theta: undefined },
    "half of each head turning": { partial_rotary_factor: undefined },
    "a large epsilon": { rms_norm_eps: 1e-5 },
    "mistral with a window inside a block": { sliding_window: 8 },
    "a mixture with weights that sum to one": { norm_topk_prob: false },
    "a mixture of one expert each": { num_experts_per_tok: 2 },
  };
  for (const [name, change] of Object.entries(changes)) {
    test(`says something else without ${name}`, () => {
      const config = cases[name] as JsonObject;
      const weights = writeOptionCase(temporaryDirectory(), config);
      const tokens = Array.from({ length: 30 }, (_, i) => (i * 7) % 90);
      const [with_, without] = [config, { ...config, ...change }].map((c) => naiveLogits(c, weights, tokens));
      const rows = (with_ ?? []).map((row) => Float32Array.from(row));
      expect(worstDifference(rows, without ?? [])).toBeGreaterThan(20 * tolerance);
    });
  }
});

describe("logits agree with the twin", () => {
  for (const [name, config] of Object.entries(cases)) {
    test(`with ${name}`, () => {
      const directory = temporaryDirectory();
      const weights = writeOptionCase(directory, config);
      using model = new ToyModel(
        createModel(readConfigFile(directory), directory),
        openSynthetic(directory),
        {
          prefixGranularity: 16,
        },
      );
      const random = new Random(name.length);
      const prompt = Int32Array.from({ length: promptLength }, () => random.integer(0, model.vocabSize - 1));
      const sequence = runAlone(model, prompt, { chunk: 19, numTokens: numDecoded });
      const tokens = [...prompt, ...sequence.generated.slice(0, -1)];
      const expected = naiveLogits(config, weights, tokens).map(logSoftmax);
      expect(worstDifference(sequence.logprobs, expected)).toBeLessThan(tolerance);
    });
  }
});
