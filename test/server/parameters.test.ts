/**
 * Every request that asks for too much is refused at once, naming the field; what comes near the edge is
 * served.
 */
import { describe, expect, test } from "bun:test";
import { maxLogitBiases, maxStopStrings } from "../../src/limits";
import { readSamplingDefaults } from "../../src/server/parameters/sampling-defaults";
import { bodyOf, serverUnderTest } from "./server-under-test";

const server = serverUnderTest();
const messages = [{ role: "user", content: "hi" }];

async function chat(fields: object) {
  const beginMs = performance.now();
  const response = await server.post("/v1/chat/completions", { messages, max_tokens: 4, ...fields });
  return { status: response.status, body: await bodyOf(response), tookMs: performance.now() - beginMs };
}

/** Fields that JSON.stringify cannot say. */
async function chatRaw(field: string) {
  const response = await server.post(
    "/v1/chat/completions",
    `{"messages":${JSON.stringify(messages)},${field}}`,
  );
  return { status: response.status, body: await bodyOf(response) };
}

const manyBiases = Object.fromEntries(Array.from({ length: maxLogitBiases + 1 }, (_, id) => [String(id), 1]));

const refused: readonly (readonly [string, object])[] = [
  ["n", { n: 5_000_000 }],
  ["n", { n: 0 }],
  ["top_logprobs", { logprobs: true, top_logprobs: 1_000_000_000 }],
  ["top_logprobs", { logprobs: true, top_logprobs: 21 }],
  ["top_logprobs", { logprobs: true, top_logprobs: -1 }],
  ["top_logprobs", { top_logprobs: 3 }],
  ["stop", { stop: Array.from({ length: 10_000 }, (_, i) => String(i)) }],
  ["stop", { stop: Array.from({ length: maxStopStrings + 1 }, (_, i) => String(i)) }],
  ["stop", { stop: [""] }],
  ["stop", { stop: "x".repeat(5000) }],
  ["stop_token_ids", { stop_token_ids: [320] }],
  ["stop_token_ids", { stop_token_ids: [-1] }],
  ["logit_bias", { logit_bias: manyBiases }],
  ["logit_bias", { logit_bias: { 320: 1 } }],
  ["logit_bias", { logit_bias: { one: 1 } }],
  ["logit_bias", { logit_bias: { 1: 101 } }],
  ["temperature", { temperature: 1e308 }],
  ["temperature", { temperature: -0.1 }],
  ["temperature", { temperature: "NaN" }],
  ["top_p", { top_p: -1 }],
  ["top_p", { top_p: 1.1 }],
  ["top_k", { top_k: -2 }],
  ["min_p", { min_p: 2 }],
  ["repetition_penalty", { repetition_penalty: 0 }],
  ["presence_penalty", { presence_penalty: 2.1 }],
  ["frequency_penalty", { frequency_penalty: -2.1 }],
  ["min_tokens", { min_tokens: 5 }],
  ["min_tokens", { min_tokens: -1 }],
  ["priority", { priority: 1e300 }],
  ["seed", { seed: -1 }],
  ["seed", { seed: 2 ** 53 }],
  ["seed", { seed: 1.5 }],
  ["seed", { seed: "18446744073709551616" }],
  ["seed", { seed: "-1" }],
  ["seed", { seed: "0x10" }],
  ["max_tokens", { max_tokens: 0 }],
  ["max_tokens", { max_tokens: -1 }],
  ["max_tokens", { max_tokens: 1.5 }],
  ["max_tokens", { max_tokens: "12" }],
  ["max_completion_tokens", { max_completion_tokens: -1 }],
  ["prompt_logprobs", { prompt_logprobs: 21 }],
  ["prompt_logprobs", { prompt_logprobs: 1, stream: true }],
  ["stream_options", { stream_options: { include_usage: true } }],
  ["cache_salt", { cache_salt: "" }],
  ["messages", { messages: [] }],
  ["messages", { messages: { 0: "x" } }],
  ["messages[0].role", { messages: [{ content: "x" }] }],
  ["messages[1]", { messages: [...messages, { role: "user", content: [{ type: "image_url" }] }] }],
];

const unsupported: readonly (readonly [string, object])[] = [
  ["audio", { audio: { voice: "x" } }],
  ["modalities", { modalities: ["text", "audio"] }],
  ["tool_choice", { tools: [{ type: "function" }], tool_choice: "required" }],
  ["tool_choice", { tools: [{ type: "function" }], tool_choice: { type: "function" } }],
  ["functions", { functions: [{ name: "f" }] }],
  ["response_format", { response_format: { type: "json_object" } }],
  ["structured_outputs", { structured_outputs: { regex: "a" } }],
  ["continue_final_message", { continue_final_message: true }],
];

/** Names of tests must not be as long as what they send. */
function labelled(cases: readonly (readonly [string, object])[]) {
  return cases.map(([param, fields]) => [JSON.stringify(fields).slice(0, 60), param, fields] as const);
}

describe("a field out of bounds", () => {
  test.each(labelled(refused))("%s is refused within 50 ms", async (_label, param, fields) => {
    const { status, body, tookMs } = await chat(fields);
    expect({ status, param: body.error.param, type: body.error.type }).toEqual({
      status: 400,
      param,
      type: "invalid_request_error",
    });
    // The first of its kind may find the machine busy or the code cold.
    const again = [tookMs, (await chat(fields)).tookMs, (await chat(fields)).tookMs];
    expect(Math.min(...again)).toBeLessThan(50);
  });

  test.each([
    ["seed", '"seed":1e400'],
    ["temperature", '"temperature":-0.0'],
    ["temperature", '"temperature":1e999'],
  ])("%s in %s is refused", async (param, field) => {
    const { status, body } = await chatRaw(field);
    expect({ status, param: body.error.param }).toEqual({ status: 400, param });
  });

  test("never reaches the engine", () => {
    expect(server.engine.requests).toHaveLength(0);
  });
});

describe("a field that would change the answer and is not supported", () => {
  test.each(labelled(unsupported))("%s is refused", async (_label, param, fields) => {
    const { status, body } = await chat(fields);
    expect({ status, param: body.error.param, code: body.error.code }).toEqual({
      status: 400,
      param,
      code: "unsupported_parameter",
    });
  });
});

describe("what is served", () => {
  const served: readonly object[] = [
    { response_format: { type: "text" }, modalities: ["text"], tool_choice: "auto", tools: [] },
    { temperature: 0, top_p: 0, top_k: -1, min_p: 1, seed: 2 ** 53 - 1, n: 3, priority: -5, user: "u" },
    { stop: null, stop_token_ids: null, logit_bias: null, logprobs: null, stream: null, seed: null, n: null },
    { nobody_knows_this: [1, 2, 3], metadata: { a: "b" }, service_tier: "auto", store: true },
    { logprobs: true, top_logprobs: 20, min_tokens: 4, model: "also/known-as" },
  ];

  test.each(served)("%j", async (fields) => {
    expect((await chat(fields)).status).toBe(200);
  });

  test("reaches the engine as it was meant", async () => {
    await chat({
      temperature: 0.5,
      top_p: 0.9,
      top_k: 7,
      min_p: 0.1,
      repetition_penalty: 1.1,
      presence_penalty: 1,
      frequency_penalty: -1,
      seed: "18446744073709551615",
      logit_bias: { 5: -100 },
      n: 2,
      stop_token_ids: [9],
      ignore_eos: true,
      min_tokens: 2,
    });
    expect(server.engine.requests.at(-1)).toMatchObject({
      numChoices: 2,
      sampling: {
        temperature: 0.5,
        topP: 0.9,
        topK: 7,
        minP: 0.1,
        repetitionPenalty: 1.1,
        presencePenalty: 1,
        frequencyPenalty: -1,
        seed: { low: 0xffff_ffff, high: 0xffff_ffff },
        logitBias: [{ tokenId: 5, bias: -100 }],
      },
      stop: { maxTokens: 4, minTokens: 2, ignoreEos: true, stopTokenIds: [9] },
    });
  });

  test("takes the model's recommendations only where the request and the server leave room", async () => {
    const recommended = { temperature: 0.6, top_p: 0.9, top_k: 20, repetition_penalty: 1e9, eos_token_id: 2 };
    const samplingDefaults = readSamplingDefaults(recommended);
    const advised = serverUnderTest({ options: { samplingDefaults } });
    await advised.post("/v1/chat/completions", { messages, max_tokens: 1, top_p: 0.5, top_k: null });
    expect(advised.engine.requests[0].sampling).toMatchObject({
      temperature: 0.6,
      topP: 0.5,
      topK: 20,
      repetitionPenalty: 1,
    });
    await chat({});
    expect(server.engine.requests.at(-1)?.sampling).toMatchObject({ temperature: 1, topP: 1, topK: 0 });
    const { sampling_defaults } = await bodyOf(await advised.get("/v1/models/test-small"));
    expect(sampling_defaults).toEqual({ temperature: 0.6, top_p: 0.9, top_k: 20 });
  });

  test("keeps two seeds apart that a double would confuse", async () => {
    await chat({ seed: "9007199254740992" });
    await chat({ seed: "9007199254740993" });
    const seeds = server.engine.requests.slice(-2).map((request) => request.sampling.seed);
    expect(seeds).toEqual([
      { low: 0, high: 0x20_0000 },
      { low: 1, high: 0x20_0000 },
    ]);
  });

  test("carries a salt as the root of a hash chain, and none without it", async () => {
    await chat({ cache_salt: "a" });
    await chat({ cache_salt: "b" });
    await chat({});
    const [first, second, third] = server.engine.requests.slice(-3).map((request) => request.namespaceRoot);
    expect(first).toHaveLength(32);
    expect(second).toHaveLength(32);
    expect(Bun.deepEquals(first, second)).toBe(false);
    expect(third).toBeUndefined();
  });
});

describe("prompts around the context of 512 tokens", () => {
  const idsOf = (length: number) => Array.from({ length }, (_, index) => 64 + (index % 20));
  const complete = async (length: number, fields: object) => {
    const response = await server.post("/v1/completions", { prompt: idsOf(length), ...fields });
    return { status: response.status, body: await bodyOf(response) };
  };

  test("leave one token of room or are refused before the engine hears of them", async () => {
    expect((await complete(511, {})).body.choices[0].finish_reason).toBe("length");
    for (const length of [512, 513, 40_000]) {
      const { status, body } = await complete(length, {});
      expect({ status, code: body.error.code }).toEqual({ status: 400, code: "context_length_exceeded" });
      expect(body.error.message).toContain("512");
      expect(body.error.message).toContain(String(length));
    }
  });

  test("leave room for max_tokens or are refused for that field", async () => {
    expect((await complete(500, { max_tokens: 12 })).status).toBe(200);
    for (const maxTokens of [13, 100_000_000]) {
      const { status, body } = await complete(500, { max_tokens: maxTokens, stream: true });
      expect({ status, param: body.error.param, code: body.error.code }).toEqual({
        status: 400,
        param: "max_tokens",
        code: "context_length_exceeded",
      });
    }
  });

  test("of a conversation may fill it to the last token", async () => {
    const overhead = (
      await bodyOf(await server.post("/tokenize", { messages: [{ role: "user", content: "" }] }))
    ).count;
    const ask = (length: number) =>
      chat({ messages: [{ role: "user", content: "x".repeat(length) }], max_tokens: null });
    const fits = await ask(511 - overhead);
    expect(fits.body.usage).toMatchObject({ prompt_tokens: 511, completion_tokens: 1 });
    expect((await ask(512 - overhead)).body.error.param).toBe("messages");
  });
});
