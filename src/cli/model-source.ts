/**
 * Which model a command serves: a directory, a cached hub snapshot, or the demo model that the executable
 * carries.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { unpack } from "../../ffi/unpack";
import { GranaryError } from "../assert";
import { readSamplingDefaults, type SamplingDefaults } from "../server/parameters/sampling-defaults";
import { readTokenizerFiles, type TokenizerFiles } from "../tokenizer/tokenizer-files";
import { resolveModelDirectory } from "../weights/hub-cache";
import type { FlagValues } from "./parse-flags";
import type { Runtime } from "./runtime";

export interface ModelSource {
  readonly directory: string;
  /** The name that clients see unless another is given. */
  readonly name: string;
  /** What the user typed. */
  readonly root: string;
}

export const demoModelName = "granary-demo";

export function locateModel(flags: FlagValues, runtime: Runtime): ModelSource {
  const model = flags.text("model");
  if (model === undefined) {
    if (runtime.embedded.demoModel.length === 0) {
      throw new GranaryError("usage", "this build carries no demo model; name one with --model");
    }
    const directory = unpack(runtime.embedded.demoModel, runtime.environment);
    return { directory, name: demoModelName, root: demoModelName };
  }
  const directory = resolveModelDirectory(model, runtime.environment, flags.text("revision"));
  return { directory, name: model, root: model };
}

/** Text files of the model's directory that say how text becomes tokens and back. */
export function readModelTexts(directory: string): TokenizerFiles {
  return readTokenizerFiles((name) => {
    const path = join(directory, name);
    return existsSync(path) ? readFileSync(path, "utf8") : undefined;
  }, directory);
}

/** What the model recommends for requests that say nothing, unless the user wants none of it. */
export function samplingDefaults(flags: FlagValues, texts: TokenizerFiles): SamplingDefaults {
  return flags.text("generation-config") === "none" ? {} : readSamplingDefaults(texts.generationConfig);
}
