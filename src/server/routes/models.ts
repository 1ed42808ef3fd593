/** GET /v1/models and GET /v1/models/NAME. */
import { Elysia } from "elysia";
import type { ServerContext } from "../dependencies";
import { checkModelName } from "../parameters/model-name";

export function models(context: ServerContext) {
  const { model } = context;
  return new Elysia({ name: "granary/models" })
    .get(
      "/v1/models",
      () => ({
        object: "list",
        data: [model.id, ...model.aliases].map((name) => describeModel(context, name)),
      }),
      { detail: { summary: "The served model and its names", tags: ["Models"] } },
    )
    .get("/v1/models/:name", ({ params }) => findModel(context, params.name), {
      detail: { summary: "One model", tags: ["Models"] },
    })
    .get("/v1/models/*", ({ params }) => findModel(context, params["*"]), { detail: { hide: true } });
}

/** Names hold slashes, which clients send plain or encoded. */
function findModel(context: ServerContext, given: string) {
  const name = decodeName(given);
  checkModelName(context.model, name);
  return describeModel(context, name);
}

function describeModel(context: ServerContext, name: string) {
  const { model, engine, tokenizer, options } = context;
  const isLoaded = engine.state === "ready" || engine.state === "draining";
  return {
    id: name,
    object: "model",
    created: model.created,
    owned_by: "granary",
    root: model.root,
    parent: null,
    ...(isLoaded ? { max_model_len: engine.limits.maxModelLen } : {}),
    end_token_ids: tokenizer.endTokens,
    has_chat_template: tokenizer.hasChatTemplate,
    sampling_defaults: options.samplingDefaults ?? {},
  };
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
