/** Where a model's files are: a directory, or a snapshot in the hub's cache. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { hubCacheDirectory, resolveModelDirectory } from "../../src/weights/hub-cache";
import { expectError } from "../support/expect-error";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const commits = { main: "a".repeat(40), tagged: "b".repeat(40), pull: "c".repeat(40) };

/** A cache with org/model at two revisions and a nested reference. */
function cacheWithModel(): string {
  const cache = temporaryDirectory();
  const repository = join(cache, "models--org--model");
  for (const commit of Object.values(commits))
    mkdirSync(join(repository, "snapshots", commit), { recursive: true });
  const references = { main: `${commits.main}\n`, "v1.0": commits.tagged, "refs/pr/7": commits.pull };
  for (const [name, commit] of Object.entries(references)) {
    const path = join(repository, "refs", name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, commit);
  }
  return cache;
}

describe("the cache directory", () => {
  test("is what HF_HUB_CACHE says, else below HF_HOME, else below the user's cache", () => {
    const all = { HF_HUB_CACHE: "/hub", HF_HOME: "/hf", XDG_CACHE_HOME: "/cache", HOME: "/home/user" };
    expect(hubCacheDirectory(all)).toBe("/hub");
    expect(hubCacheDirectory({ ...all, HF_HUB_CACHE: undefined })).toBe("/hf/hub");
    expect(hubCacheDirectory({ XDG_CACHE_HOME: "/cache", HOME: "/home/user" })).toBe(
      "/cache/huggingface/hub",
    );
    expect(hubCacheDirectory({ HOME: "/home/user" })).toBe("/home/user/.cache/huggingface/hub");
    expect(hubCacheDirectory({})).toBe(join(homedir(), ".cache/huggingface/hub"));
  });

  test("takes an empty setting for none", () => {
    const empty = { HF_HUB_CACHE: "", HF_HOME: "", XDG_CACHE_HOME: "", HOME: "/home/user" };
    expect(hubCacheDirectory(empty)).toBe("/home/user/.cache/huggingface/hub");
  });
});

describe("a model", () => {
  test("given as a directory is that directory", () => {
    const directory = temporaryDirectory();
    expect(resolveModelDirectory(directory, {})).toBe(directory);
  });

  test("given by name is the snapshot its reference points to", () => {
    const cache = cacheWithModel();
    const snapshot = (commit: string) => join(cache, "models--org--model", "snapshots", commit);
    const environment = { HF_HUB_CACHE: cache };
    expect(resolveModelDirectory("org/model", environment)).toBe(snapshot(commits.main));
    expect(resolveModelDirectory("org/model", environment, "v1.0")).toBe(snapshot(commits.tagged));
    expect(resolveModelDirectory("org/model", environment, "refs/pr/7")).toBe(snapshot(commits.pull));
  });

  test("given by name and commit needs no reference", () => {
    const cache = cacheWithModel();
    const directory = resolveModelDirectory("org/model", { HF_HUB_CACHE: cache }, commits.tagged);
    expect(directory).toEndWith(commits.tagged);
  });

  test("that is nowhere is refused with the place that was looked at", () => {
    const cache = cacheWithModel();
    const environment = { HF_HUB_CACHE: cache };
    const refuse = (model: string, revision: string, ...texts: string[]) =>
      expectError(() => resolveModelDirectory(model, environment, revision), "model_not_found", ...texts);
    refuse("org/other", "main", "org/other", join(cache, "models--org--other"));
    refuse("org/model", "v2.0", "org/model", "'v2.0'");
    for (const model of ["./absent", "/absent", "a/b/c", "../org/model", "org/mo del", ""]) {
      refuse(model, "main", "no such directory");
    }
  });
});
