/**
 * Finds a model in the Hugging Face cache layout:
 * models--org--name/{refs,snapshots}. Looks only; never downloads.
 */
import { existsSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { GranaryError } from "../assert";

export type Environment = Readonly<Record<string, string | undefined>>;

/** HF_HUB_CACHE, else HF_HOME/hub, else the cache directory of the user. */
export function hubCacheDirectory(environment: Environment): string {
  if (environment.HF_HUB_CACHE) return environment.HF_HUB_CACHE;
  if (environment.HF_HOME) return join(environment.HF_HOME, "hub");
  return join(
    environment.XDG_CACHE_HOME || join(environment.HOME || homedir(), ".cache"),
    "huggingface",
    "hub",
  );
}

function isDirectory(path: string): boolean {
  return existsSync(path) && statSync(path).isDirectory();
}

/**
 * The directory that holds a model's files: the path itself if
 * it is a directory, else the cached snapshot of "org/name" at
 * `revision` (a branch, tag or commit; default main).
 */
export function resolveModelDirectory(model: string, environment: Environment, revision = "main"): string {
  if (isDirectory(model)) return model;
  const looksLikePath = model.startsWith(".") || model.startsWith("/") || model.split("/").length > 2;
  if (looksLikePath || !/^[\w.-]+(\/[\w.-]+)?$/.test(model)) {
    throw new GranaryError("model_not_found", `${model}: no such directory`);
  }
  const repository = join(hubCacheDirectory(environment), `models--${model.replace("/", "--")}`);
  if (!isDirectory(repository)) {
    throw new GranaryError(
      "model_not_found",
      `${model}: neither a directory nor in the hub cache (${repository})`,
    );
  }
  const reference = join(repository, "refs", revision);
  const commit = existsSync(reference) ? readFileSync(reference, "utf8").trim() : revision;
  const snapshot = join(repository, "snapshots", commit);
  if (!isDirectory(snapshot)) {
    throw new GranaryError(
      "model_not_found",
      `${model}: the hub cache has no snapshot of revision '${revision}'`,
    );
  }
  return snapshot;
}
