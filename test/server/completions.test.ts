/** Text completions: prompts in every form, echo, and the log-probabilities of prompts and answers. */
import { describe, expect, test } from "bun:test";
import { FakeEngine, fakeLogprob } from "./fake-engine";
import { bodyOf, type Json, readEvents, serverUnderTest } from "./server-under-test";

const path = "/v1/completions";
const hi = [71, 72];

/** As float32 carries it. */
const logprobAt = (position: number, id: number) => Math.fround(fakeLogprob(position, id));

async function complete(fields: object, server = serverUnderTest()) {
  const response = await server.post(path, { max_tokens: 3, ...fields });
  return { status: response.status, body: await bodyOf(response), engine: server.engine };
}

describe("a tokenizer that knows more tokens than the model", () => {
  test("has those refused, in a text as in a list, before they reach the engine", async () => {
    const engine = new FakeEngine({}, { vocabSize: 72 });
    const server = serverUnderTest({ engine });
    expect((await server.post(path, { prompt: [71, 72] })).status).toBe(400);
    for (const prompt of ["hi", ["h", "hi"]]) {
      const response = await server.post(path, { prompt });
      expect(response.status).toBe(400);
      expect((await bodyOf(response)).error.code).toBe("token_out_of_vocabulary");
    }
    expect(engine.requests).toEqual([]);
    expect((await server.post(path, { prompt: "hh", max_tokens: 1 })).status).toBe(200);
  });
});

describe("a prompt", () => {
  test("may be a text, texts, token ids or lists of token ids", async () => {
    const forms: readonly (readonly [unknown, number[][]])[] = [
      ["hi", [hi]],
      [
        ["hi", "i"],
        [hi, [72]],
      ],
      [hi, [hi]],
      [
        [hi, [72]],
        [hi, [72]],
      ],
    ];
    for (const [prompt, expected] of forms) {
      const { body, engine } = await complete({ prompt });
      expect(engine.requests.map((request) => [...request.tokens])).toEqual(expected);
      expect(body.choices.map((choice: Json) => choice.index)).toEqual(expected.map((_, index) => index));
      expect(body.usage.prompt_tokens).toBe(expected.flat().length);
    }
  });

  test("of several has its choices numbered prompt by prompt", async () => {
    const { body } = await complete({ prompt: ["ab", "xyz"], n: 2, max_tokens: 2 });
    expect(body.choices.map((choice: Json) => choice.text)).toEqual(["ab", "ba", "xy", "yz"]);
    expect(body.usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 8 });
  });

  test.each([
    [{ prompt: "" }, "prompt"],
    [{ prompt: [] }, "prompt"],
    [{ prompt: [[]] }, "prompt"],
    [{ prompt: [320] }, "prompt"],
    [{ prompt: [-1] }, "prompt"],
    [{ prompt: [1.5] }, "prompt"],
    [{ prompt: [1, "a"] }, "prompt"],
    [{}, "prompt"],
    [{ prompt: "a", suffix: "b" }, "suffix"],
    [{ prompt: "a", best_of: 2 }, "best_of"],
    [{ prompt: "a", best_of: 1e9 }, "best_of"],
    [{ prompt: "a", logprobs: 21 }, "logprobs"],
    [{ prompt: "a", logprobs: -1 }, "logprobs"],
    [{ prompt: "a", echo: "yes" }, "echo"],
  ])("%j is refused", async (fields, param) => {
    const { status, body, engine } = await complete(fields);
    expect({ status, param: body.error.param }).toEqual({ status: 400, param });
    expect(engine.requests).toHaveLength(0);
  });

  test("may not be too many at once", async () => {
    const { status, body } = await complete({ prompt: Array.from({ length: 300 }, () => "a") });
    expect({ status, param: body.error.param }).toEqual({ status: 400, param: "n" });
  });

  test("gets 16 tokens when nobody says how many", async () => {
    const server = serverUnderTest();
    const body = await bodyOf(await server.post(path, { prompt: "abc" }));
    expect(body.usage.completion_tokens).toBe(16);
  });
});

describe("log-probabilities of a completion", () => {
  test("name token, value, alternatives and place", async () => {
    const { body } = await complete({ prompt: hi, logprobs: 2 });
    const { logprobs, text } = body.choices[0];
    expect(text).toBe("hih");
    expect(logprobs.tokens).toEqual(["h", "i", "h"]);
    expect(logprobs.text_offset).toEqual([0, 1, 2]);
    expect(logprobs.token_logprobs).toEqual([logprobAt(2, 71), logprobAt(3, 72), logprobAt(4, 71)]);
    expect(logprobs.top_logprobs[0].h).toBe(logprobAt(2, 71));
    expect(Object.keys(logprobs.top_logprobs[0])).toHaveLength(3);
  });

  test("cover the whole vocabulary where the server allows it", async () => {
    const server = serverUnderTest({ options: { maxLogprobs: -1 } });
    const fields = { prompt: hi, logprobs: -1, return_tokens_as_token_ids: true, max_tokens: 1 };
    const { body } = await complete(fields, server);
    const [top] = body.choices[0].logprobs.top_logprobs;
    expect(Object.keys(top)).toHaveLength(320);
    for (const id of [0, 71, 257, 319]) expect(top[`token_id:${id}`]).toBe(logprobAt(2, id));
  });

  test("of the prompt come one entry a position, the first without", async () => {
    const { body, engine } = await complete({ prompt: hi, prompt_logprobs: 1 });
    const [first, second] = body.choices[0].prompt_logprobs;
    expect(first).toBeNull();
    expect(second[72]).toMatchObject({ logprob: logprobAt(1, 72), decoded_token: "i" });
    expect(second[72].rank).toBeGreaterThan(1);
    const [best] = Object.values(second).filter((entry: Json) => entry.rank === 1) as Json[];
    expect(best.logprob).toBeGreaterThan(second[72].logprob);
    expect(engine.requests[0]).toMatchObject({ promptLogprobs: 1, maxCachedPrefixTokens: 0 });
  });

  test("of a whole vocabulary are refused where they would not fit in memory", async () => {
    const engine = new FakeEngine({}, { vocabSize: 200_000 });
    const server = serverUnderTest({ engine, options: { maxLogprobs: -1 } });
    const long = Array.from({ length: 100 }, () => 64);
    const ask = async (fields: object) => {
      const { status, body } = await complete({ prompt: long, ...fields }, server);
      return status === 200 ? "served" : body.error.param;
    };
    expect(await ask({ prompt_logprobs: -1 })).toBe("prompt_logprobs");
    expect(await ask({ logprobs: -1, max_tokens: 84 })).toBe("max_tokens");
    expect(await ask({ logprobs: -1, max_tokens: 10, n: 10 })).toBe("max_tokens");
    expect(engine.requests).toHaveLength(0);
    expect(await ask({ max_tokens: 84 })).toBe("served");
  });

  test("of the prompt rank the whole vocabulary", async () => {
    const server = serverUnderTest({ options: { maxLogprobs: -1 } });
    const { body } = await complete({ prompt: hi, prompt_logprobs: -1 }, server);
    const entries = Object.entries(body.choices[0].prompt_logprobs[1]) as [string, Json][];
    expect(entries).toHaveLength(320);
    const byRank = entries.map(([, entry]) => entry).toSorted((a, b) => a.rank - b.rank);
    expect(byRank.map((entry) => entry.rank)).toEqual(Array.from({ length: 320 }, (_, index) => index + 1));
    expect(byRank.every((entry, index) => index === 0 || entry.logprob <= byRank[index - 1].logprob)).toBe(
      true,
    );
  });
});

describe("echo", () => {
  test("repeats the prompt in front of the text", async () => {
    expect((await complete({ prompt: "hi", echo: true })).body.choices[0].text).toBe("hihih");
    expect((await complete({ prompt: hi, echo: true })).body.choices[0].text).toBe("hihih");
  });

  test("with log-probabilities shows the prompt's, bypasses the cache and says so", async () => {
    const server = serverUnderTest({ script: { cachedTokens: 16 } });
    const { body, engine } = await complete({ prompt: hi, echo: true, logprobs: 1, max_tokens: 0 }, server);
    expect(body.choices[0]).toMatchObject({
      text: "hi",
      finish_reason: "length",
      logprobs: { tokens: ["h", "i"], token_logprobs: [null, logprobAt(1, 72)], text_offset: [0, 1] },
    });
    expect(body.usage).toMatchObject({ completion_tokens: 0, prompt_tokens_details: { cached_tokens: 0 } });
    expect(engine.requests[0]).toMatchObject({ maxCachedPrefixTokens: 0, stop: { maxTokens: 0 } });
  });
});

describe("a streamed completion", () => {
  test.each([
    { prompt: "hi" },
    { prompt: ["ab", "xyz"], n: 2 },
    { prompt: "hi", logprobs: 1 },
    { prompt: "hi", logprobs: 1, echo: true },
    { prompt: hi, echo: true, max_tokens: 0, logprobs: 0 },
    { prompt: "hi", stop: "ih", return_token_ids: true },
  ])("says the same as the whole answer for %j", async (fields) => {
    const server = serverUnderTest({ script: { tokensPerChunk: 2 } });
    const whole = (await complete(fields, server)).body;
    const body = { max_tokens: 3, ...fields, stream: true, stream_options: { include_usage: true } };
    const { events, isDone } = await readEvents(await server.post(path, body));
    expect(isDone).toBe(true);
    expect(events.at(-1).usage).toEqual(whole.usage);
    for (const choice of whole.choices) {
      const own = events
        .flatMap((event) => event.choices)
        .filter((part: Json) => part.index === choice.index);
      expect(own.map((part: Json) => part.text).join("")).toBe(choice.text);
      expect(own.at(-1).finish_reason).toBe(choice.finish_reason);
      expect(own.flatMap((part: Json) => part.token_ids ?? [])).toEqual(choice.token_ids ?? []);
      for (const list of ["tokens", "token_logprobs", "top_logprobs", "text_offset"]) {
        expect(own.flatMap((part: Json) => part.logprobs?.[list] ?? [])).toEqual(
          choice.logprobs?.[list] ?? [],
        );
      }
    }
  });
});

describe("token routes", () => {
  test("tokenize shows the ids that a generation starts from", async () => {
    const server = serverUnderTest();
    const messages = [{ role: "user", content: "<|im_end|>" }];
    const { tokens, count, max_model_len } = await bodyOf(await server.post("/tokenize", { messages }));
    await server.post("/v1/chat/completions", { messages, max_tokens: 1 });
    expect(tokens).toEqual([...server.engine.requests[0].tokens]);
    expect({ count, max_model_len }).toEqual({ count: tokens.length, max_model_len: 512 });
    const named = await bodyOf(await server.post("/tokenize", { prompt: "hi", return_token_strs: true }));
    expect(named).toMatchObject({ tokens: hi, token_strs: ["h", "i"] });
  });

  test("detokenize gives the text back, special tokens included", async () => {
    const server = serverUnderTest();
    expect(await bodyOf(await server.post("/detokenize", { tokens: [256, ...hi] }))).toEqual({
      prompt: "<|im_start|>hi",
    });
    expect((await server.post("/detokenize", { tokens: [320] })).status).toBe(400);
  });

  test("tokenize wants either a prompt or messages", async () => {
    const server = serverUnderTest();
    expect((await server.post("/tokenize", {})).status).toBe(400);
    expect(
      (await server.post("/tokenize", { prompt: "a", messages: [{ role: "user", content: "a" }] })).status,
    ).toBe(400);
  });
});
