/**
 * Per-request sampling on its way through the executor: biases,
 * suppressed ids, penalties, seeds, logits that are no numbers.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { SamplingOptions } from "../../src/engine/protocol";
import type { RequestSampling } from "../../src/executor/request-sampling";
import { createModel, readConfigFile } from "../../src/models/registry";
import { openCheckpoint } from "../../src/weights/checkpoint";
import { openSynthetic } from "../../src/weights/synthetic";
import { smallConfig } from "../support/decoder-config";
import { decoderTensors } from "../support/decoder-tensors";
import { BlockDeck, HandDrivenSequence, runAlone, stepTogether } from "../support/hand-driven-sequence";
import { loadReferenceCase } from "../support/reference-case";
import { float32Tensor, writeSafetensors } from "../support/safetensors-file";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";
import { greedy, ToyModel } from "../support/toy-model";

removeTemporaryDirectories();

const reference = loadReferenceCase("qwen3");
const { directory } = reference;
const model = new ToyModel(createModel(readConfigFile(directory), directory), openSynthetic(directory));
afterAll(() => model[Symbol.dispose]());

const prompt = reference.prompt("c");

interface Settings extends Partial<Omit<RequestSampling, "options">> {
  readonly options?: Partial<SamplingOptions>;
}

/** Generates for several requests at once. */
function generate(requests: readonly Settings[], numTokens: number): readonly (readonly number[])[] {
  const deck = new BlockDeck(model.numLcmBlocks, 1);
  const sequences = requests.map(({ options, ...rest }, i) => {
    const sequence = new HandDrivenSequence(model, deck, i + 1, prompt);
    model.sampling.set(i + 1, {
      seedLow: 1,
      seedHigh: 2,
      choice: 0,
      promptLength: prompt.length,
      suppressedIds: [],
      minTokens: 0,
      ...rest,
      options: { ...greedy, ...options },
    });
    return sequence;
  });
  while (sequences.some(({ generated }) => generated.length < numTokens)) stepTogether(model, sequences);
  return sequences.map(({ generated }) => generated);
}

const only = (settings: Settings, numTokens = 8) => generate([settings], numTokens)[0] as readonly number[];
const plain = only({});

describe("biases", () => {
  test("can force a token and forbid one, for their own request alone", () => {
    const forced = { options: { logitBias: [{ tokenId: 42, bias: 1000 }] } };
    const forbidden = { options: { logitBias: [{ tokenId: plain[0] as number, bias: -1000 }] } };
    const [a, b, c] = generate([forced, {}, forbidden], 4);
    expect(a).toEqual([42, 42, 42, 42]);
    expect(b).toEqual(plain.slice(0, 4));
    expect(c).not.toContain(plain[0] as number);
  });
});

describe("suppressed ids", () => {
  test("do not appear before the least number of tokens", () => {
    const first = plain[0] as number;
    const suppressed = only({ suppressedIds: [first], minTokens: 3 });
    expect(suppressed.slice(0, 3)).not.toContain(first);
    const forced = { options: { logitBias: [{ tokenId: first, bias: 100 }] } };
    expect(only({ ...forced, suppressedIds: [first], minTokens: 3 }).slice(3)).toEqual(Array(5).fill(first));
  });

  test("do not matter without such a number", () => {
    expect(only({ suppressedIds: [plain[0] as number] })).toEqual(plain);
  });
});

describe("penalties", () => {
  const forced = { logitBias: [{ tokenId: 42, bias: 20 }] };

  test("on presence and frequency push a token away once it was generated", () => {
    expect(only({ options: forced }, 4)).toEqual([42, 42, 42, 42]);
    const present = only({ options: { ...forced, presencePenalty: 1000 } }, 4);
    expect(present[0]).toBe(42);
    expect(present.slice(1)).not.toContain(42);
    const frequent = only({ options: { ...forced, frequencyPenalty: 8 } }, 8);
    const uses = frequent.filter((token) => token === 42).length;
    expect(uses).toBeGreaterThan(1);
    expect(uses).toBeLessThan(8);
  });

  test("on repetition weigh the prompt's tokens too", () => {
    const repeated = only({ options: { repetitionPenalty: 1e6 } }, 8);
    for (const token of repeated) expect([...prompt]).not.toContain(token);
    expect(new Set(repeated).size).toBe(repeated.length);
  });
});

describe("drawing", () => {
  const hot = { options: { temperature: 2 } };

  test("depends on seed, choice and position, and on nothing else in the batch", () => {
    const [a, b, c, d] = generate(
      [{ ...hot, seedLow: 5 }, { ...hot, seedLow: 6 }, { ...hot, seedLow: 5, choice: 1 }, {}],
      8,
    );
    expect(only({ ...hot, seedLow: 5 })).toEqual(a as readonly number[]);
    expect(only({ ...hot, seedLow: 6 })).toEqual(b as readonly number[]);
    expect(only({ ...hot, seedLow: 5, choice: 1 })).toEqual(c as readonly number[]);
    expect(d).toEqual(plain);
    expect(new Set([a, b, c].map(String)).size).toBe(3);
  });

  test("takes the seed's upper half into account", () => {
    expect(only({ ...hot, seedHigh: 9 })).not.toEqual(only(hot));
  });

  test("is greedy when one token is left to choose from", () => {
    expect(only({ options: { temperature: 2, topK: 1 } })).toEqual(plain);
    expect(only({ options: { temperature: 2, topP: 1e-6 } })).toEqual(plain);
    expect(only({ options: { temperature: 2, minP: 1 } })).toEqual(plain);
  });
});

describe("logits that are no numbers", () => {
  test("yield no token and no log-probabilities of one", () => {
    const config = { ...smallConfig, tie_word_embeddings: true };
    const directory = temporaryDirectory();
    const tensors = Object.entries(decoderTensors(config)).map(([name, shape]) => {
      const count = shape.reduce((product, extent) => product * extent, 1);
      const value = name === "model.norm.weight" ? Number.NaN : 0.5;
      return [name, float32Tensor(shape, Array(count).fill(value))];
    });
    writeSafetensors(join(directory, "model.safetensors"), Object.fromEntries(tensors));
    using source = openCheckpoint(directory);
    using broken = new ToyModel(createModel(config, "config.json"), source);
    const sequence = runAlone(broken, Int32Array.of(1, 2, 3));
    expect(sequence.generated).toEqual([-1]);
    // Of the prompt's own tokens alone.
    expect(sequence.logprobs).toHaveLength(2);
  });
});
