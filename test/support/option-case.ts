/**
 * A model directory for any configuration: config.json and a recipe
 * of synthetic weights, with the values at hand for the twin.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../src/models/config-reader";
import { decoderTensors } from "./decoder-tensors";
import type { WeightsOf } from "./naive-decoder";
import { type SyntheticRecipe, syntheticValues } from "./synthetic-values";

const seed = 31;

/** Spreads that make every tensor matter to the logits, biases included. */
function recipeOf(name: string, shape: readonly number[]): SyntheticRecipe {
  if (shape.length === 2) {
    const isVocabulary = name.includes("embed") || name.includes("lm_head");
    return { shape, scale: (isVocabulary ? 2 : 1.2) / Math.sqrt(shape[1] as number), offset: 0 };
  }
  return name.endsWith("bias") ? { shape, scale: 0.5, offset: 0.1 } : { shape, scale: 0.2, offset: 1 };
}

/** Writes the files to an empty directory and returns the weights by name. */
export function writeOptionCase(directory: string, config: JsonObject): WeightsOf {
  const recipes = new Map(
    Object.entries(decoderTensors(config)).map(([name, shape]) => [name, recipeOf(name, shape)]),
  );
  writeFileSync(join(directory, "config.json"), JSON.stringify(config));
  writeFileSync(
    join(directory, "weights.json"),
    JSON.stringify({ seed, tensors: Object.fromEntries(recipes) }),
  );
  const values = new Map<string, Float64Array>();
  return (name) => {
    const recipe = recipes.get(name);
    if (recipe === undefined) throw new Error(`the checkpoint has no ${name}`);
    const known = values.get(name) ?? syntheticValues(seed, name, recipe);
    values.set(name, known);
    return known;
  };
}
