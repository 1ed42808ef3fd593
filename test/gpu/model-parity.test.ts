/**
 * Whole models on the card: the reference logits in float32 and bfloat16, cold and warm, chunked and batched,
 * with recorded graphs and plans made ahead, and without.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Device } from "../../ffi/device";
import type { EngineOptions } from "../../src/engine/engine-options";
import { EngineDriver, type Outcome } from "../support/engine-driver";
import { logSoftmaxRow } from "../support/log-softmax";
import { loadReferenceCase, type PromptName, type ReferenceCase } from "../support/reference-case";
import { hasCard, openCuda } from "./support/devices";

const float32Tolerance = 2e-3;
/** Error of one row that plain rounding to bfloat16 may cause. */
const bfloat16Floor = 0.03;
/** Below this gap between the two best logits a rounding error may choose either. */
const decisiveMargin = 0.15;

type Rounding = Readonly<Record<string, Readonly<Record<PromptName, { readonly medianRow: number }>>>>;
const rounding: Rounding = JSON.parse(
  readFileSync(join(import.meta.dir, "../fixtures/reference/bf16.json"), "utf8"),
);

/** Log-probabilities of the prompt's tokens, one row a position from 1 on. */
function promptRows(outcome: Outcome, vocabSize: number): Float32Array[] {
  return outcome.chunks.flatMap(({ promptLogprobs }) =>
    promptLogprobs === undefined
      ? []
      : Array.from({ length: promptLogprobs.numRows }, (_, row) =>
          promptLogprobs.values.slice(row * vocabSize, (row + 1) * vocabSize),
        ),
  );
}

/** Known rows of a prompt: what the reference says and what came back, both as log-probabilities. */
function knownRows(reference: ReferenceCase, prompt: PromptName, outcome: Outcome) {
  const rows = promptRows(outcome, reference.vocabSize);
  const logits = reference.logits(prompt);
  return [...reference.rows(prompt)].flatMap((position, index) => {
    const actual = rows[position];
    const begin = index * reference.vocabSize;
    const expected = logSoftmaxRow(logits.subarray(begin, begin + reference.vocabSize));
    return actual === undefined ? [] : [{ actual, expected }];
  });
}

function centred(row: ArrayLike<number>): number[] {
  const values = Array.from(row);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return values.map((value) => value - mean);
}

const norm = (values: readonly number[]) => Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));

/** Relative error of a row of logits, whose common shift a softmax loses. */
function relativeError(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  const [x, y] = [centred(actual), centred(expected)];
  return norm(x.map((value, i) => value - (y[i] as number))) / norm(y);
}

function expectRows(reference: ReferenceCase, prompt: PromptName, outcome: Outcome, dtype: string): void {
  const rows = knownRows(reference, prompt, outcome);
  expect(rows.length).toBeGreaterThan(5);
  if (dtype === "float32") {
    const worst = rows.map(({ actual, expected }) =>
      Math.max(...expected.map((value, id) => Math.abs(value - (actual[id] as number)))),
    );
    expect(Math.max(...worst)).toBeLessThan(float32Tolerance);
  } else {
    const errors = rows.map(({ actual, expected }) => relativeError(actual, expected)).sort((a, b) => a - b);
    const known = rounding[reference.name]?.[prompt].medianRow ?? 0;
    expect(errors[Math.floor(errors.length / 2)]).toBeLessThanOrEqual(Math.max(bfloat16Floor, 1.5 * known));
  }
}

/** Exact in float32; in bfloat16 up to the first step that rounding may decide. */
function expectGreedy(reference: ReferenceCase, tokens: readonly number[], dtype: string): void {
  const undecided = reference.greedyAMargin.findIndex((margin) => margin < decisiveMargin);
  const decided = dtype === "float32" || undecided < 0 ? reference.greedyA.length : undecided;
  expect(tokens.slice(0, decided)).toEqual([...reference.greedyA.slice(0, decided)]);
}

describe.skipIf(!hasCard())("models on the card", () => {
  let cuda: Device;
  beforeAll(() => {
    cuda = openCuda();
  });
  afterAll(() => cuda.close());

  for (const name of ["llama", "qwen3", "qwen3-moe", "mistral-swa"]) {
    for (const dtype of ["float32", "bfloat16"] as const) {
      const reference = loadReferenceCase(name);
      const open = (options: Partial<EngineOptions>) =>
        EngineDriver.open(name, { device: "cuda", dtype, debugChecks: false, ...options }, cuda);

      for (const [title, options] of [
        ["eager", { enableGraphs: false, enableOverlap: false }],
        ["with graphs", { enableGraphs: true, enableOverlap: false }],
        ["with graphs and overlap", { enableGraphs: true, enableOverlap: true }],
        ["in chunks of 64, with graphs and overlap", { enableOverlap: true, maxNumBatchedTokens: 64 }],
        ["in chunks of 100, mixed with answers", { enableMixedBatch: true, maxNumBatchedTokens: 100 }],
      ] as const) {
        test(`${name} in ${dtype}, ${title}, answers like the reference, cold and warm`, () => {
          const driver = open(options);
          const cold = driver.generate(reference.prompt("a"), { request: { promptLogprobs: -1 } });
          expectRows(reference, "a", cold, dtype);
          if (name !== "qwen3-moe" || dtype === "float32") expectGreedy(reference, cold.tokens, dtype);
          const warm = driver.generate(reference.prompt("a"));
          expect(warm.cachedTokens).toBe(256);
          if (name !== "qwen3-moe" || dtype === "float32") expectGreedy(reference, warm.tokens, dtype);
          driver.check();
        });
      }

      test(`${name} in ${dtype} answers three prompts in one batch like the reference`, () => {
        const driver = open({ enableOverlap: true });
        const prompts = ["a", "b", "c"] as const;
        const ids = prompts.map((prompt) =>
          driver.submit(reference.prompt(prompt), { request: { promptLogprobs: -1 } }),
        );
        driver.run();
        prompts.forEach((prompt, i) => {
          if (prompt !== "c") expectRows(reference, prompt, driver.outcome(ids[i] as number), dtype);
        });
      });
    }
  }
});
