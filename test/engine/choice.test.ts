/** When one choice ends, and what the sampler is told about it. */
import { describe, expect, test } from "bun:test";
import { Choice } from "../../src/engine/choice";
import { engineRequest, type RequestChanges } from "../support/engine-request";

/** End tokens as three files of a model named them. */
const endTokens = [2, 7, 9];
const seed = { low: 3, high: 4 };
const choiceOf = (changes: RequestChanges = {}, index = 0) =>
  new Choice(engineRequest(changes), index, endTokens, seed);

describe("a choice ends", () => {
  test("by stop at every end token of the model", () => {
    for (const token of endTokens) {
      const choice = choiceOf();
      expect(choice.take(1)).toBeUndefined();
      expect(choice.take(token)).toBe("stop");
      expect(choice.numGenerated).toBe(2);
    }
  });

  test("by stop at the request's own ids, also when end tokens are ignored", () => {
    const stop = { ignoreEos: true, stopTokenIds: [7, 30] };
    for (const token of [7, 30]) expect(choiceOf({ stop }).take(token)).toBe("stop");
    for (const token of [2, 9]) expect(choiceOf({ stop }).take(token)).toBeUndefined();
  });

  test("by length at its last token, by stop when that is an end token", () => {
    const choice = choiceOf({ stop: { maxTokens: 2 } });
    expect([choice.take(1), choice.take(1)]).toEqual([undefined, "length"]);
    const other = choiceOf({ stop: { maxTokens: 2 } });
    expect([other.take(1), other.take(7)]).toEqual([undefined, "stop"]);
  });
});

describe("the sampler is told", () => {
  test("what ends the choice, so that it can be held back", () => {
    const { sampling } = choiceOf({ stop: { minTokens: 3, stopTokenIds: [30, 7] } });
    expect(sampling.minTokens).toBe(3);
    expect([...sampling.suppressedIds].sort((a, b) => a - b)).toEqual([2, 7, 9, 30]);
    expect(choiceOf({ stop: { ignoreEos: true } }).sampling.suppressedIds).toEqual([]);
  });

  test("its seed, its place among the choices and the prompt's length", () => {
    const { sampling } = choiceOf({ numChoices: 3 }, 2);
    expect(sampling).toMatchObject({ seedLow: 3, seedHigh: 4, choice: 2, promptLength: 3 });
  });

  test("which log-probabilities are wanted; the prompt's from the first choice alone", () => {
    const wanted = { logprobs: 5, promptLogprobs: -1, numChoices: 2 };
    expect(choiceOf(wanted).sampling).toMatchObject({ logprobs: 5, promptLogprobs: -1 });
    const second = choiceOf(wanted, 1).sampling;
    expect([second.logprobs, second.promptLogprobs]).toEqual([5, undefined]);
  });
});
