/** Small decoder configurations as their files spell them. */
import { ConfigReader, type JsonObject } from "../../src/models/config-reader";
import { type DecoderConfig, readDecoderConfig } from "../../src/models/decoder-config";

/** A llama of two layers. */
export const smallConfig = {
  model_type: "llama",
  vocab_size: 97,
  hidden_size: 48,
  intermediate_size: 80,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  rms_norm_eps: 1e-5,
  max_position_embeddings: 512,
} as const satisfies JsonObject;

export const smallMixture = {
  ...smallConfig,
  model_type: "qwen3_moe",
  num_experts: 5,
  num_experts_per_tok: 2,
  moe_intermediate_size: 24,
} as const satisfies JsonObject;

/** What the reader makes of the small configuration with these changes. */
export function decoderConfig(changes: JsonObject, base: JsonObject = smallConfig): DecoderConfig {
  return readDecoderConfig(new ConfigReader({ ...base, ...changes }, "config.json"));
}
