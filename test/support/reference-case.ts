/**
 * A reference case: a toy checkpoint's directory with prompts and the logits that its architecture must give.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { mapFile } from "../../ffi/mmap";
import { readSafetensorsHeader } from "../../src/weights/safetensors";

export type PromptName = "a" | "b" | "c";

export interface ReferenceCase {
  readonly name: string;
  readonly directory: string;
  readonly vocabSize: number;
  prompt(name: PromptName): Int32Array;
  /** Positions whose logits are known. */
  rows(name: PromptName): Int32Array;
  /** float32 [rows, vocabSize]. */
  logits(name: PromptName): Float32Array;
  readonly greedyA: Int32Array;
  readonly greedyAMargin: Float32Array;
}

const referenceDirectory = join(import.meta.dir, "../fixtures/reference");

export function loadReferenceCase(name: string): ReferenceCase {
  const directory = join(referenceDirectory, name);
  const file = mapFile(join(directory, "reference.safetensors"));
  const entries = new Map(readSafetensorsHeader(file).map((entry) => [entry.name, entry]));
  const bytes = (tensor: string): ArrayBuffer => {
    const entry = entries.get(tensor);
    if (entry === undefined) throw new Error(`${name} has no tensor ${tensor}`);
    return file.read(entry.offsetBytes, entry.lengthBytes).buffer as ArrayBuffer;
  };
  const config = JSON.parse(readFileSync(join(directory, "config.json"), "utf8"));
  return {
    name,
    directory,
    vocabSize: config.vocab_size,
    prompt: (prompt) => new Int32Array(bytes(`prompt_${prompt}`)),
    rows: (prompt) => new Int32Array(bytes(`rows_${prompt}`)),
    logits: (prompt) => new Float32Array(bytes(`logits_${prompt}`)),
    greedyA: new Int32Array(bytes("greedy_a")),
    greedyAMargin: new Float32Array(bytes("greedy_a_margin")),
  };
}
