/**
 * The reference architectures through plans written by hand: whole and in chunks, alone and together, in
 * blocks of any order, the answers are the reference's, and equal each other bit for bit.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createModel, readConfigFile } from "../../src/models/registry";
import { openSynthetic } from "../../src/weights/synthetic";
import { BlockDeck, HandDrivenSequence, runAlone, stepTogether } from "../support/hand-driven-sequence";
import { worstDifference } from "../support/log-softmax";
import { loadReferenceCase, type PromptName, type ReferenceCase } from "../support/reference-case";
import { ToyModel, type ToyModelOptions } from "../support/toy-model";

const tolerance = 2e-3;
const numGreedy = 24;

function openModel({ directory }: ReferenceCase, options: ToyModelOptions = {}): ToyModel {
  return new ToyModel(createModel(readConfigFile(directory), directory), openSynthetic(directory), options);
}

/** The first position at which two sequences' log-probabilities differ in any bit. */
function firstUnequalPosition(
  actual: readonly Float32Array[],
  expected: readonly Float32Array[],
): number | undefined {
  if (actual.length !== expected.length) return Math.min(actual.length, expected.length);
  const position = actual.findIndex((row, i) => {
    const other = expected[i] as Float32Array;
    return Buffer.compare(new Uint8Array(row.buffer), new Uint8Array(other.buffer)) !== 0;
  });
  return position < 0 ? undefined : position;
}

for (const name of ["llama", "qwen3", "qwen3-moe", "mistral-swa"]) {
  const reference = loadReferenceCase(name);
  const prompt = reference.prompt("a");

  describe(name, () => {
    let model: ToyModel;
    /** Prompt a in one go, then greedily. */
    let whole: HandDrivenSequence;
    beforeAll(() => {
      model = openModel(reference);
      whole = runAlone(model, prompt, { numTokens: numGreedy });
    });
    afterAll(() => model[Symbol.dispose]());

    function expectSameAsWhole(sequence: HandDrivenSequence): void {
      expect(sequence.generated).toEqual(whole.generated.slice(0, sequence.generated.length));
      expect(firstUnequalPosition(sequence.logprobs, whole.logprobs.slice(0, sequence.logprobs.length))).toBe(
        undefined,
      );
    }

    test("every prompt's logits are the reference's", () => {
      for (const letter of ["a", "b", "c"] as PromptName[]) {
        const { logprobs } = letter === "a" ? whole : runAlone(model, reference.prompt(letter));
        const rows = reference.rows(letter);
        expect(rows.every((position) => logprobs[position] !== undefined)).toBe(true);
        const actual = logprobs.map((row) => [...row]);
        const worst = worstDifference(actual, rows, reference.logits(letter), reference.vocabSize);
        expect(worst).toBeLessThan(tolerance);
      }
    });

    test("greedy tokens are the reference's wherever it is sure", () => {
      const sure = [...reference.greedyAMargin].findIndex((margin) => margin < tolerance);
      const count = sure < 0 ? numGreedy : sure;
      expect(count).toBeGreaterThan(12);
      expect(whole.generated.slice(0, count)).toEqual([...reference.greedyA].slice(0, count));
    });

    for (const chunk of [16, 64, 100]) {
      test(`chunks of ${chunk} change no bit`, () => {
        expectSameAsWhole(runAlone(model, prompt, { chunk, numTokens: 3 }));
      });
    }

    test("tokens that are fed again in front of a chunk change no bit, and are not reported again", () => {
      expectSameAsWhole(runAlone(model, prompt, { chunk: 90, replay: 25, numTokens: 2 }));
    });

    test("other blocks in another order change no bit", () => {
      expectSameAsWhole(runAlone(model, prompt, { seed: 99, slot: 5, chunk: 100, numTokens: 3 }));
    });

    test("a token that was decoded is what the prompt's pass would have computed", () => {
      const longer = Int32Array.from([...prompt, ...whole.generated.slice(0, -1)]);
      expect(firstUnequalPosition(runAlone(model, longer).logprobs, whole.logprobs)).toBe(undefined);
    });

    test("company in the batch changes no bit", () => {
      const deck = new BlockDeck(model.numLcmBlocks, 3);
      const letters = ["b", "a", "c"] as const;
      const sequences = letters.map(
        (letter, i) => new HandDrivenSequence(model, deck, 2 + i, reference.prompt(letter)),
      );
      // Prompts of unequal length: while the long ones are at their chunks, the short one decodes.
      while (sequences.some((sequence) => sequence.generated.length < 3)) stepTogether(model, sequences, 100);
      for (const sequence of sequences) sequence.close();
      expectSameAsWhole(sequences[1] as HandDrivenSequence);
      const [b, , c] = sequences as [HandDrivenSequence, HandDrivenSequence, HandDrivenSequence];
      for (const sequence of [b, c]) {
        const prompt = sequence.tokens.subarray(0, sequence.promptLength);
        const alone = runAlone(model, prompt, { numTokens: sequence.generated.length });
        expect(firstUnequalPosition(sequence.logprobs, alone.logprobs)).toBe(undefined);
      }
    });

    test("smaller blocks, smaller pages and more threads change no bit", () => {
      const geometries: readonly ToyModelOptions[] = [
        { prefixGranularity: 16, numLcmBlocks: 90, numThreads: 2 },
        { prefixGranularity: 48, kernelPageSize: 12, maxLogitRows: 8 },
      ];
      for (const options of geometries) {
        using other = openModel(reference, options);
        expectSameAsWhole(runAlone(other, prompt, { chunk: 100, numTokens: 3 }));
      }
    });
  });
}
