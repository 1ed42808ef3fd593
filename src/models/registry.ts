/** From a model directory's config.json to a Model; the one place that knows which architectures exist. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { GranaryError } from "../assert";
import { ConfigReader, isObject, type JsonObject } from "./config-reader";
import { Decoder } from "./decoder";
import { decoderModelTypes, isDecoderModelType, readDecoderConfig } from "./decoder-config";
import type { Model } from "./model";

/** Keys that describe training, provenance or generation defaults and change no logit. */
const inertKeys = new Set([
  "_name_or_path",
  "architectures",
  "attention_dropout",
  "auto_map",
  "bos_token_id",
  "dtype",
  "eos_token_id",
  "hidden_dropout",
  "initializer_range",
  "model_type",
  "output_router_logits",
  "pad_token_id",
  "pretraining_tp",
  "residual_dropout",
  "router_aux_loss_coef",
  "torch_dtype",
  "transformers_version",
  "use_cache",
  "unk_token_id",
  "output_attentions",
  "output_hidden_states",
  "return_dict",
  "vocab_size",
  "max_window_layers",
  "use_sliding_window",
  "shared_expert_intermediate_size",
  "num_experts",
  "num_local_experts",
  "intermediate_size",
  "id2label",
  "label2id",
]);

export function readConfigFile(directory: string): JsonObject {
  const path = join(directory, "config.json");
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new GranaryError("invalid_config", `${path}: ${(error as Error).message}`);
  }
  if (!isObject(parsed)) throw new GranaryError("invalid_config", `${path}: it is not an object`);
  return parsed;
}

/** Builds the model that `config` describes; `origin` names its file in errors. */
export function createModel(config: JsonObject, origin: string): Model {
  const reader = new ConfigReader(config, origin);
  const modelType = reader.text("model_type");
  if (!isDecoderModelType(modelType)) {
    const known = decoderModelTypes.join(", ");
    throw new GranaryError(
      "unsupported_model",
      `${origin}: model_type '${modelType}' is not supported (${known} are)`,
    );
  }
  const decoderConfig = readDecoderConfig(reader);
  const unknown = reader.unread().filter((key) => !inertKeys.has(key));
  if (unknown.length > 0) reader.remark(`ignored ${unknown.join(", ")}`);
  return new Decoder(decoderConfig, reader.remarks);
}
