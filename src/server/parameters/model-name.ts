/** The model that a request names must be the one that is served. */
import type { ModelCard } from "../dependencies";
import { ApiError } from "../http/api-error";

export function isServedModel(model: ModelCard, name: string): boolean {
  return name === model.id || model.aliases.includes(name);
}

/** A request that names no model means the served one. */
export function checkModelName(model: ModelCard, name: string | null | undefined): void {
  if (name === undefined || name === null || isServedModel(model, name)) return;
  throw new ApiError(
    404,
    `The model '${name.slice(0, 200)}' does not exist; this server serves '${model.id}'.`,
    {
      type: "not_found_error",
      param: "model",
      code: "model_not_found",
    },
  );
}
