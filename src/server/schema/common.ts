/**
 * The parts of request bodies that several routes share: types only, ranges are checked in parameters/.
 * Plain TypeBox, since Elysia's own integers accept numbers that came as strings.
 */
import { type TSchema, Type } from "@sinclair/typebox";

/** A field that may be left out or be null; both mean the default. */
export function maybe<Schema extends TSchema>(schema: Schema) {
  return Type.Optional(Type.Union([schema, Type.Null()]));
}

export const samplingFields = {
  temperature: maybe(Type.Number()),
  top_p: maybe(Type.Number()),
  top_k: maybe(Type.Integer()),
  min_p: maybe(Type.Number()),
  repetition_penalty: maybe(Type.Number()),
  presence_penalty: maybe(Type.Number()),
  frequency_penalty: maybe(Type.Number()),
  logit_bias: maybe(Type.Record(Type.String(), Type.Number())),
  seed: maybe(Type.Union([Type.Number(), Type.String()])),
};

export const stopFields = {
  stop: maybe(Type.Union([Type.String(), Type.Array(Type.String())])),
  stop_token_ids: maybe(Type.Array(Type.Integer())),
  min_tokens: maybe(Type.Integer()),
  ignore_eos: maybe(Type.Boolean()),
  skip_special_tokens: maybe(Type.Boolean()),
  include_stop_str_in_output: maybe(Type.Boolean()),
};

export const streamFields = {
  stream: maybe(Type.Boolean()),
  stream_options: maybe(
    Type.Object(
      { include_usage: maybe(Type.Boolean()), continuous_usage_stats: maybe(Type.Boolean()) },
      { additionalProperties: true },
    ),
  ),
};

export const generationFields = {
  model: maybe(Type.String()),
  n: maybe(Type.Integer()),
  user: maybe(Type.String()),
  cache_salt: maybe(Type.String()),
  priority: maybe(Type.Integer()),
  prompt_logprobs: maybe(Type.Integer()),
  return_tokens_as_token_ids: maybe(Type.Boolean()),
  return_token_ids: maybe(Type.Boolean()),
  ...samplingFields,
  ...stopFields,
  ...streamFields,
};

/** Bodies may carry fields that nobody here knows. */
export const open = { additionalProperties: true } as const;

export const jsonObject = Type.Record(Type.String(), Type.Unknown());
