/** What an engine gives its requests: tokens, ends, choices, and the same whatever else is in the batch. */
import { describe, expect, test } from "bun:test";
import { EngineDriver, type RequestSettings } from "../support/engine-driver";
import { loadReferenceCase } from "../support/reference-case";

const reference = loadReferenceCase("llama");
const [a, b, c] = [reference.prompt("a"), reference.prompt("b"), reference.prompt("c")];
const greedyA = [...reference.greedyA];
const random: RequestSettings = { sampling: { temperature: 1, seed: { low: 7, high: 0 } } };

describe("greedy generation", () => {
  test("gives the reference's tokens and ends by length", () => {
    const outcome = EngineDriver.open("llama").generate(a);
    expect(outcome.tokens).toEqual(greedyA);
    expect(outcome.finish).toBe("length");
    expect(outcome.cachedTokens).toBe(0);
  });

  test("reports every token once, in a chunk of its own step", () => {
    const outcome = EngineDriver.open("llama").generate(a);
    expect(outcome.chunks.map((chunk) => chunk.tokens.length)).toEqual(Array(24).fill(1));
  });

  test("is the same with plans submitted ahead of results", () => {
    const driver = EngineDriver.open("llama", { enableOverlap: true });
    const ids = [a, b, c].map((prompt) => driver.submit(prompt));
    driver.run();
    expect(driver.outcome(ids[0] as number).tokens).toEqual(greedyA);
    const plain = EngineDriver.open("llama", { enableOverlap: false });
    for (const [i, prompt] of [a, b, c].entries()) {
      expect(driver.outcome(ids[i] as number).tokens).toEqual(plain.generate(prompt).tokens);
    }
    driver.check();
  });

  test("is the same when prompts and answers share steps", () => {
    const driver = EngineDriver.open("llama", { enableMixedBatch: true, maxNumBatchedTokens: 100 });
    const first = driver.submit(c, { stop: { maxTokens: 40 } });
    driver.engine.step();
    driver.engine.step();
    const second = driver.submit(a);
    driver.run();
    expect(driver.outcome(second).tokens).toEqual(greedyA);
    const alone = EngineDriver.open("llama").generate(c, { stop: { maxTokens: 40 } });
    expect(driver.outcome(first).tokens).toEqual(alone.tokens);
  });

  test("gives everybody the right tokens from a pool that holds one or two requests at a time", () => {
    const roomy = EngineDriver.open("llama", { numLcmBlocks: 64 });
    const tight = EngineDriver.open("llama", { numLcmBlocks: 9, maxModelLen: 512 });
    const prompts = [a, b, c, a.slice(0, 200), b.slice(0, 150)];
    const ids = prompts.map((prompt) => tight.submit(prompt, { stop: { maxTokens: 100 } }));
    tight.run();
    prompts.forEach((prompt, i) => {
      const expected = roomy.generate(prompt, { stop: { maxTokens: 100 } }).tokens;
      expect(tight.outcome(ids[i] as number).tokens).toEqual(expected);
    });
    tight.check();
  });
});

describe("the end of a generation", () => {
  const third = greedyA[2] as number;

  test("comes with a stop id, which is the last token", () => {
    const outcome = EngineDriver.open("llama").generate(a, { stop: { stopTokenIds: [third] } });
    expect(outcome.tokens).toEqual(greedyA.slice(0, 3));
    expect(outcome).toMatchObject({ finish: "stop", stopTokenId: third });
  });

  test("comes with the model's end token unless it is ignored", () => {
    const driver = EngineDriver.open("llama", { endTokens: [third] });
    expect(driver.generate(a, { stop: { ignoreEos: false } }).finish).toBe("stop");
    expect(driver.generate(a, { stop: { ignoreEos: true } }).finish).toBe("length");
  });

  test("is held back below min_tokens", () => {
    const driver = EngineDriver.open("llama", { endTokens: [third] });
    const outcome = driver.generate(a, { stop: { ignoreEos: false, minTokens: 10 } });
    expect(outcome.tokens.slice(0, 10)).not.toContain(third);
    expect(outcome.tokens.length).toBeGreaterThanOrEqual(10);
  });

  test("refuses a model whose files name more end tokens than a request can hold back", () => {
    const endTokens = Array.from({ length: 129 }, (_, id) => id);
    expect(() => EngineDriver.open("llama", { endTokens })).toThrow("129 end tokens");
  });

  test("comes at once where more is asked for than the context has, and others go on", () => {
    const driver = EngineDriver.open("llama", { maxModelLen: 400, numLcmBlocks: 64 });
    const tooLong = driver.submit(a, { stop: { maxTokens: 401 - a.length } });
    const longest = driver.submit(a, { stop: { maxTokens: 400 - a.length } });
    driver.run();
    expect(driver.outcome(tooLong)).toMatchObject({ finish: "error", tokens: [] });
    expect(driver.outcome(longest)).toMatchObject({ finish: "length" });
    expect(driver.outcome(longest).tokens).toHaveLength(400 - a.length);
    driver.check();
  });

  test("is by length for all that the context holds, whether the model or the cache bounds it", () => {
    for (const bound of [{ maxModelLen: undefined, numLcmBlocks: 5 }, { maxModelLen: 300 }]) {
      const driver = EngineDriver.open("llama", bound);
      const { maxModelLen } = driver.engine.limits;
      for (const maxTokens of [0, 1, 2]) {
        const prompt = Int32Array.from(
          { length: maxModelLen - maxTokens },
          (_, i) => a[i % a.length] as number,
        );
        expect(driver.generate(prompt, { stop: { maxTokens } })).toMatchObject({ finish: "length" });
      }
      driver.check();
    }
  });

  test("of a prompt alone yields no token and publishes the prompt", () => {
    const driver = EngineDriver.open("llama");
    const outcome = driver.generate(a, { stop: { maxTokens: 0 } });
    expect(outcome.tokens).toEqual([]);
    expect(outcome.finish).toBe("length");
    expect(driver.generate(a).cachedTokens).toBe(256);
  });

  test("that a reader asks for drops later tokens and frees the request", () => {
    const driver = EngineDriver.open("llama");
    const id = driver.submit(a, { stop: { maxTokens: 200 } });
    while (driver.outcome(id).tokens.length < 5) driver.engine.step();
    driver.engine.handle({ kind: "finish", id, choice: 0, keptTokens: 3 });
    driver.run();
    expect(driver.outcome(id).tokens.length).toBeLessThanOrEqual(6);
    expect(driver.gauges).toMatchObject({ decoding: 0, activeLcmBlocks: 0 });
    driver.check();
  });
});

describe("a client that goes away", () => {
  for (const enableOverlap of [false, true]) {
    test(`frees its blocks within one step, overlap ${enableOverlap ? "on" : "off"}`, () => {
      const driver = EngineDriver.open("llama", { enableOverlap });
      const id = driver.submit(a, { stop: { maxTokens: 200 } });
      while (driver.outcome(id).tokens.length < 3) driver.engine.step();
      driver.engine.handle({ kind: "abort", id });
      driver.engine.step();
      driver.run(2);
      expect(driver.gauges?.activeLcmBlocks).toBe(0);
      driver.check();
    });
  }

  test("while its prompt is computed leaves nothing behind", () => {
    const driver = EngineDriver.open("llama", { maxNumBatchedTokens: 64 });
    const id = driver.submit(a);
    driver.engine.step();
    driver.engine.handle({ kind: "abort", id });
    driver.run();
    expect(driver.gauges).toMatchObject({ waiting: 0, prefilling: 0, activeLcmBlocks: 0 });
    driver.check();
  });
});

describe("several choices", () => {
  test("differ from each other and repeat with the seed", () => {
    const draw = () => {
      const driver = EngineDriver.open("llama");
      const id = driver.submit(a, { ...random, request: { numChoices: 3 } });
      driver.run();
      return [0, 1, 2].map((choice) => driver.outcome(id, choice).tokens);
    };
    const first = draw();
    expect(new Set(first.map(String)).size).toBe(3);
    expect(draw()).toEqual(first);
  });

  test("after the first find the prompt in the cache", () => {
    const driver = EngineDriver.open("llama");
    const id = driver.submit(a, { ...random, request: { numChoices: 3 } });
    driver.run();
    expect([0, 1, 2].map((choice) => driver.outcome(id, choice).cachedTokens)).toEqual([0, 256, 256]);
    expect(driver.gauges?.decoding).toBe(0);
  });

  test("come also when the first ends with its first token", () => {
    const driver = EngineDriver.open("llama");
    const id = driver.submit(a, { ...random, stop: { maxTokens: 1 }, request: { numChoices: 2 } });
    driver.run();
    expect([0, 1].map((choice) => driver.outcome(id, choice).finish)).toEqual(["length", "length"]);
  });
});

describe("sampling with a seed", () => {
  test("gives the same tokens alone, among neighbours, and from the cache", () => {
    const driver = EngineDriver.open("llama", { numLcmBlocks: 128 });
    const alone = driver.generate(a, random).tokens;
    const id = driver.submit(a, random);
    const neighbours = Array.from({ length: 7 }, () => driver.submit(b, { sampling: { temperature: 1 } }));
    driver.run();
    expect(driver.outcome(id).tokens).toEqual(alone);
    expect(neighbours.every((other) => driver.outcome(other).tokens.length === 24)).toBe(true);
  });

  test("differs by either half of the seed", () => {
    const driver = EngineDriver.open("llama");
    const seeds = [
      { low: 7, high: 0 },
      { low: 8, high: 0 },
      { low: 7, high: 1 },
    ];
    const drawn = seeds.map((seed) => driver.generate(a, { sampling: { temperature: 1, seed } }).tokens);
    expect(new Set(drawn.map(String)).size).toBe(3);
  });

  test("obeys top_k, top_p and min_p at their ends", () => {
    const driver = EngineDriver.open("llama");
    for (const narrow of [{ topK: 1 }, { topP: 1e-6 }, { minP: 1 }]) {
      expect(driver.generate(a, { sampling: { ...random.sampling, ...narrow } }).tokens).toEqual(greedyA);
    }
  });

  test("obeys biases and penalties", () => {
    const driver = EngineDriver.open("llama");
    const biased = driver.generate(a, { sampling: { logitBias: [{ tokenId: 5, bias: 100 }] } });
    expect(new Set(biased.tokens)).toEqual(new Set([5]));
    const banned = driver.generate(a, {
      sampling: { logitBias: [{ tokenId: greedyA[0] as number, bias: -100 }] },
    });
    expect(banned.tokens).not.toContain(greedyA[0]);
    const penalised = driver.generate(a, { sampling: { presencePenalty: 2, frequencyPenalty: 2 } });
    expect(penalised.tokens).not.toEqual(greedyA);
    expect(new Set(penalised.tokens).size).toBeGreaterThan(new Set(greedyA).size);
  });
});

describe("the cache of an engine", () => {
  test("serves a namespace to nobody else", () => {
    const driver = EngineDriver.open("llama");
    const namespaceRoot = new Uint8Array(32).fill(9);
    driver.generate(a, { request: { namespaceRoot } });
    expect(driver.generate(a).cachedTokens).toBe(0);
    expect(driver.generate(a, { request: { namespaceRoot } }).cachedTokens).toBe(256);
  });

  test("is not read when it is switched off", () => {
    const driver = EngineDriver.open("llama", { enablePrefixCaching: false });
    driver.generate(a);
    expect(driver.generate(a).cachedTokens).toBe(0);
  });

  test("is empty after a flush, which waits for nobody and tells so", () => {
    const driver = EngineDriver.open("llama");
    driver.generate(a);
    driver.engine.handle({ kind: "flush", id: 1 });
    expect(driver.generate(a).cachedTokens).toBe(0);
  });

  test("makes room by eviction and keeps every answer right", () => {
    const driver = EngineDriver.open("llama", { numLcmBlocks: 12, maxModelLen: 512 });
    for (let round = 0; round < 6; round++) {
      const other = a.map((token, i) => (i < 3 ? (token + round + 1) % 256 : token));
      driver.generate(other);
      expect(driver.generate(a).tokens).toEqual(greedyA);
    }
    expect(driver.gauges?.evictions).toBeGreaterThan(0);
    driver.check();
  });

  test("holds a follow-up turn's whole history", () => {
    const driver = EngineDriver.open("llama");
    const answer = driver.generate(a).tokens;
    const followUp = Int32Array.of(...a, ...answer, 1, 2, 3);
    expect(driver.generate(followUp).cachedTokens).toBe(Math.floor((a.length + answer.length - 1) / 64) * 64);
  });
});

describe("log-probabilities", () => {
  /** The rows of one generated token at each wanted number of alternatives. */
  const rowsAt = (counts: readonly number[]) => {
    const driver = EngineDriver.open("llama");
    return counts.map((logprobs) => {
      const { chunks } = driver.generate(a, { stop: { maxTokens: 1 }, request: { logprobs } });
      return chunks.at(-1)?.logprobs;
    });
  };

  test("of any number of alternatives begin with the same ones", () => {
    const [none, five, hundred, whole] = rowsAt([0, 5, 100, -1]);
    expect(none?.ids).toHaveLength(0);
    expect([...(hundred?.ids ?? [])].slice(0, 5)).toEqual([...(five?.ids ?? [])]);
    expect([...(hundred?.values ?? [])].slice(0, 5)).toEqual([...(five?.values ?? [])]);
    expect(hundred?.ids).toHaveLength(100);
    expect(whole?.values).toHaveLength(320);
    const sorted = [...(whole?.values ?? [])].sort((x, y) => y - x);
    expect([...(hundred?.values ?? [])]).toEqual(sorted.slice(0, 100));
  });

  test("name the drawn token's own value and rank", () => {
    const [rows] = rowsAt([-1]);
    expect(rows?.chosenValues[0]).toBe(rows?.values[greedyA[0] as number] as number);
    expect(rows?.chosenRanks[0]).toBe(1);
  });
});
