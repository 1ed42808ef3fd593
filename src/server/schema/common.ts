/** The parts of request bodies that several routes share: types only, ranges are checked in parameters/. */
import { type TSchema, t } from "elysia";

/** A field that may be left out or be null; both mean the default. */
export function maybe<Schema extends TSchema>(schema: Schema) {
  return t.Optional(t.Union([schema, t.Null()]));
}

export const samplingFields = {
  temperature: maybe(t.Number()),
  top_p: maybe(t.Number()),
  top_k: maybe(t.Integer()),
  min_p: maybe(t.Number()),
  repetition_penalty: maybe(t.Number()),
  presence_penalty: maybe(t.Number()),
  frequency_penalty: maybe(t.Number()),
  logit_bias: maybe(t.Record(t.String(), t.Number())),
  seed: maybe(t.Union([t.Number(), t.String()])),
};

export const stopFields = {
  stop: maybe(t.Union([t.String(), t.Array(t.String())])),
  stop_token_ids: maybe(t.Array(t.Integer())),
  min_tokens: maybe(t.Integer()),
  ignore_eos: maybe(t.Boolean()),
  skip_special_tokens: maybe(t.Boolean()),
  include_stop_str_in_output: maybe(t.Boolean()),
};

export const streamFields = {
  stream: maybe(t.Boolean()),
  stream_options: maybe(
    t.Object(
      { include_usage: maybe(t.Boolean()), continuous_usage_stats: maybe(t.Boolean()) },
      { additionalProperties: true },
    ),
  ),
};

export const generationFields = {
  model: maybe(t.String()),
  n: maybe(t.Integer()),
  user: maybe(t.String()),
  cache_salt: maybe(t.String()),
  priority: maybe(t.Integer()),
  prompt_logprobs: maybe(t.Integer()),
  return_tokens_as_token_ids: maybe(t.Boolean()),
  return_token_ids: maybe(t.Boolean()),
  ...samplingFields,
  ...stopFields,
  ...streamFields,
};

/** Bodies may carry fields that nobody here knows. */
export const open = { additionalProperties: true } as const;

export const jsonObject = t.Record(t.String(), t.Unknown());
