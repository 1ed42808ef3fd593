/**
 * Options of llama, mistral, qwen2, qwen3 and qwen3_moe,
 * and the refusal of those that would change the answer.
 */
import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../src/models/config-reader";
import { decoderConfig, smallConfig, smallMixture } from "../support/decoder-config";
import { expectError } from "../support/expect-error";

const refused = (changes: JsonObject, ...texts: string[]) =>
  expectError(() => decoderConfig(changes), "unsupported_config", "config.json", ...texts);

const full = "full_attention";
const sliding = "sliding_attention";
const typeNames = ["llama", "mistral", "qwen2", "qwen3"] as const;

describe("shapes", () => {
  test("are read as they are", () => {
    expect(decoderConfig({})).toMatchObject({
      modelType: "llama",
      vocabSize: 97,
      hiddenSize: 48,
      intermediateSize: 80,
      numLayers: 2,
      numQHeads: 4,
      numKvHeads: 2,
      headDim: 12,
      rmsNormEpsilon: 1e-5,
      maxPositions: 512,
    });
  });

  test("may leave out the key-value heads, the head's width, epsilon and the positions", () => {
    const absent = { num_key_value_heads: null, rms_norm_eps: null, max_position_embeddings: null };
    expect(decoderConfig(absent)).toMatchObject({
      numKvHeads: 4,
      headDim: 12,
      rmsNormEpsilon: 1e-6,
      maxPositions: 2048,
    });
  });

  test("may give heads a width that does not follow from the hidden size", () => {
    expect(decoderConfig({ head_dim: 20 }).headDim).toBe(20);
    expect(decoderConfig({ hidden_size: 50, head_dim: 20 }).headDim).toBe(20);
  });

  test("that do not fit together are refused", () => {
    refused({ num_key_value_heads: 3 }, "3 key-value heads do not divide 4");
    refused({ hidden_size: 50 }, "4 heads do not divide the hidden size 50");
    refused({ head_dim: 7 }, "even number of dimensions");
  });

  test("that are no positive whole numbers are refused by name", () => {
    const names = [
      "vocab_size",
      "hidden_size",
      "intermediate_size",
      "num_hidden_layers",
      "num_attention_heads",
    ];
    for (const name of names) {
      for (const value of [undefined, 0, -1, 1.5, "48", [48]]) refused({ [name]: value }, name);
    }
    for (const epsilon of ["1e-6", 0, -1]) refused({ rms_norm_eps: epsilon }, "rms_norm_eps");
  });
});

describe("biases", () => {
  const biasesOf = (changes: JsonObject) => {
    const { hasQkvBias, hasOutputBias, hasMlpBias } = decoderConfig(changes);
    return { qkv: hasQkvBias, output: hasOutputBias, mlp: hasMlpBias };
  };
  const none = { qkv: false, output: false, mlp: false };

  test("of llama are those its flags name", () => {
    expect(biasesOf({})).toEqual(none);
    expect(biasesOf({ attention_bias: true })).toEqual({ qkv: true, output: true, mlp: false });
    expect(biasesOf({ mlp_bias: true })).toEqual({ ...none, mlp: true });
  });

  test("of qwen2 are on q, k and v, always", () => {
    expect(biasesOf({ model_type: "qwen2" })).toEqual({ ...none, qkv: true });
  });

  test("of qwen3 follow attention_bias, and mistral has none", () => {
    expect(biasesOf({ model_type: "qwen3" })).toEqual(none);
    expect(biasesOf({ model_type: "qwen3", attention_bias: true })).toMatchObject({
      qkv: true,
      output: true,
    });
    expect(biasesOf({ model_type: "mistral" })).toEqual(none);
  });

  test("must be flags", () => {
    for (const value of [1, "true", []]) refused({ attention_bias: value }, "attention_bias");
  });
});

describe("head norms", () => {
  test("belong to qwen3 and its mixture", () => {
    const has = (changes: JsonObject, base: JsonObject) => decoderConfig(changes, base).hasHeadNorms;
    expect(typeNames.map((model_type) => has({ model_type }, smallConfig))).toEqual([
      false,
      false,
      false,
      true,
    ]);
    expect(has({}, smallMixture)).toBe(true);
  });
});

describe("the output matrix", () => {
  test("is tied, untied or left open", () => {
    const tiedIn = (value: unknown) => decoderConfig({ tie_word_embeddings: value }).tieWordEmbeddings;
    expect([tiedIn(true), tiedIn(false), tiedIn(undefined), tiedIn(null)]).toEqual([
      true,
      false,
      undefined,
      undefined,
    ]);
    refused({ tie_word_embeddings: "yes" }, "tie_word_embeddings");
  });
});

describe("windows", () => {
  const layersOf = (changes: JsonObject, base: JsonObject = smallConfig) => {
    const { layerLabels, slidingWindow } = decoderConfig(changes, base);
    return [...layerLabels, slidingWindow];
  };

  test("are never llama's", () => {
    expect(layersOf({ sliding_window: 64, use_sliding_window: true })).toEqual([full, full, undefined]);
    refused({ layer_types: [full, sliding], sliding_window: 64 }, `"${sliding}"`, "llama");
  });

  test("are every layer's in mistral, unless it is null", () => {
    expect(layersOf({ model_type: "mistral", sliding_window: 64 })).toEqual([sliding, sliding, 64]);
    expect(layersOf({ model_type: "mistral", sliding_window: null })).toEqual([full, full, undefined]);
    expect(layersOf({ model_type: "mistral" })).toEqual([sliding, sliding, 4096]);
  });

  test("begin at a layer in qwen2 and qwen3, when they are used", () => {
    for (const model_type of ["qwen2", "qwen3"]) {
      const window = { model_type, sliding_window: 64 };
      expect(layersOf(window)).toEqual([full, full, undefined]);
      const used = { ...window, use_sliding_window: true };
      expect(layersOf({ ...used, max_window_layers: 1 })).toEqual([full, sliding, 64]);
      expect(layersOf({ ...used, max_window_layers: 0 })).toEqual([sliding, sliding, 64]);
      expect(layersOf({ ...used, max_window_layers: 2 })).toEqual([full, full, undefined]);
      expect(layersOf(used)).toEqual([full, full, undefined]);
      expect(layersOf({ ...used, sliding_window: null })).toEqual([full, full, undefined]);
    }
  });

  test("are every layer's in a mixture that uses them", () => {
    const used = { sliding_window: 64, use_sliding_window: true, max_window_layers: 1 };
    expect(layersOf(used, smallMixture)).toEqual([sliding, sliding, 64]);
    expect(layersOf({ sliding_window: 64 }, smallMixture)).toEqual([full, full, undefined]);
  });

  test("are where layer_types puts them", () => {
    const listed = { model_type: "qwen3", layer_types: [sliding, full] };
    expect(layersOf({ ...listed, sliding_window: 64 })).toEqual([sliding, full, 64]);
    expect(layersOf({ ...listed, layer_types: [full, full], sliding_window: 64 })).toEqual([
      full,
      full,
      undefined,
    ]);
  });

  test("that are listed but not given, or switched off, are refused", () => {
    const listed = { model_type: "qwen3", layer_types: [sliding, full] };
    refused(listed, "sliding_window");
    refused({ ...listed, sliding_window: 64, use_sliding_window: false }, "not used");
    refused({ ...listed, layer_types: [full] }, "2 layers");
    refused({ ...listed, layer_types: full }, "layer_types");
    refused({ ...listed, layer_types: [full, "chunked_attention"] }, '"chunked_attention"', "qwen3");
    refused({ model_type: "mistral", sliding_window: 0 }, "sliding_window");
  });
});

describe("mixtures", () => {
  const moe = (changes: JsonObject) => decoderConfig(changes, smallMixture).moe;
  const refusedMixture = (changes: JsonObject, ...texts: string[]) =>
    expectError(() => moe(changes), "unsupported_config", ...texts);

  test("are read in full", () => {
    expect(moe({ norm_topk_prob: true })).toEqual({
      numExperts: 5,
      expertsPerToken: 2,
      intermediateSize: 24,
      normaliseWeights: true,
      isSparse: [true, true],
    });
    expect(moe({})?.normaliseWeights).toBe(false);
    expect(moe({ num_experts: null, num_local_experts: 7 })?.numExperts).toBe(7);
    expect(decoderConfig({}).moe).toBeUndefined();
  });

  test("may stand in some layers only", () => {
    const sparse = (changes: JsonObject) =>
      moe({ num_hidden_layers: 6, ...changes })
        ?.isSparse.map(Number)
        .join("");
    expect(sparse({})).toBe("111111");
    expect(sparse({ decoder_sparse_step: 2 })).toBe("010101");
    expect(sparse({ decoder_sparse_step: 3 })).toBe("001001");
    expect(sparse({ mlp_only_layers: [0, 4] })).toBe("011101");
    expect(sparse({ decoder_sparse_step: 2, mlp_only_layers: [1] })).toBe("000101");
  });

  test("with impossible numbers are refused", () => {
    refusedMixture({ num_experts_per_tok: 6 }, "num_experts_per_tok 6 exceeds 5");
    for (const name of ["num_experts_per_tok", "moe_intermediate_size"]) {
      refusedMixture({ [name]: 0 }, name);
      refusedMixture({ [name]: undefined }, name);
    }
    refusedMixture({ num_experts: undefined }, "num_experts");
    refusedMixture({ num_experts: 100, num_experts_per_tok: 65 }, "num_experts_per_tok 65");
    for (const layers of [3, [6], [-1], ["a"], [0.5]]) {
      refusedMixture({ mlp_only_layers: layers }, "mlp_only_layers");
    }
    refusedMixture({ decoder_sparse_step: 0 }, "decoder_sparse_step");
  });
});

describe("options that would change the answer", () => {
  test("are refused by name and value", () => {
    const foreign: JsonObject = {
      hidden_act: "gelu",
      quantization_config: { quant_method: "fp8" },
      final_logit_softcapping: 30,
      attn_logit_softcapping: 50,
      logit_scale: 0.5,
      logits_scaling: 8,
      embedding_multiplier: 12,
      residual_multiplier: 0.22,
      scale_emb: 12,
      attention_multiplier: 0.01,
      query_pre_attn_scalar: 256,
      num_nextn_predict_layers: 1,
      clip_qkv: 8,
      add_cross_attention: true,
    };
    for (const [name, value] of Object.entries(foreign))
      refused({ [name]: value }, `${name} = ${JSON.stringify(value)}`);
  });

  test("pass where they change nothing", () => {
    const neutral: JsonObject = {
      hidden_act: "silu",
      quantization_config: null,
      final_logit_softcapping: null,
      logit_scale: 1,
      residual_multiplier: 1,
      num_nextn_predict_layers: 0,
      clip_qkv: null,
      is_decoder: true,
      add_cross_attention: false,
    };
    expect(decoderConfig(neutral)).toEqual(decoderConfig({}));
    expect(decoderConfig({ hidden_act: "swish" })).toEqual(decoderConfig({}));
  });
});
