/**
 * Holds a parsed body against its schema. A refusal costs no more than the look itself: the web framework's
 * own check prints the whole body with indentation into its error, which takes a minute for 40 kB of
 * brackets.
 */
import type { Static, TSchema } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { ApiError, invalidParam } from "./api-error";

export type BodyCheck<Body> = (body: unknown) => Body;

/** The returned check gives the body back, or throws an ApiError about the first field that will not do. */
export function bodyCheck<Schema extends TSchema>(schema: Schema): BodyCheck<Static<Schema>> {
  const compiled = TypeCompiler.Compile(schema);
  return (body) => {
    if (compiled.Check(body)) return body;
    throw wrongField(compiled.Errors(body).First()?.path ?? "");
  };
}

/** `path` is a JSON pointer: /messages/0/role is told as messages[0].role. */
function wrongField(path: string): ApiError {
  const param = path
    .split("/")
    .slice(1)
    .reduce(
      (name, key) => (/^\d+$/.test(key) ? `${name}[${key}]` : name === "" ? key : `${name}.${key}`),
      "",
    );
  if (param === "") return new ApiError(400, "The request body must be a JSON object.");
  return invalidParam(param, `${param} has the wrong type or is missing.`, "invalid_type");
}
