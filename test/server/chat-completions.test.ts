/** Chat completions: the shape of the answer, and that a stream says what the whole answer says. */
import { describe, expect, test } from "bun:test";
import { bodyOf, type Json, readEvents, serverUnderTest } from "./server-under-test";

const messages = [{ role: "user", content: "hi" }];
const path = "/v1/chat/completions";

/** Tokens that spell `text` in the byte-level fixture, then the end token. */
async function script(text: string, server: ReturnType<typeof serverUnderTest>, withEnd = true) {
  const ids = [...(await server.tokenizer.encodePrompt(text, false))];
  server.engine.script = { ...server.engine.script, tokens: () => (withEnd ? [...ids, 257] : ids) };
}

/** What a client puts together from a stream, choice by choice. */
function joined(events: readonly Json[]): Json {
  const choices: Json[] = [];
  let usage: Json;
  for (const event of events) {
    for (const choice of event.choices) {
      choices[choice.index] ??= { text: "", finish_reason: null, logprobs: [], token_ids: [] };
      const into = choices[choice.index];
      into.text += choice.delta.content ?? "";
      into.finish_reason ??= choice.finish_reason;
      into.logprobs.push(...(choice.logprobs?.content ?? []));
      into.token_ids.push(...(choice.token_ids ?? []));
    }
    usage = event.usage ?? usage;
  }
  return { choices, usage };
}

describe("a chat completion", () => {
  test("carries message, finish reason and usage with the cached tokens", async () => {
    const server = serverUnderTest({ script: { cachedTokens: 16 } });
    await script("Hello, 漢字!", server);
    const body = await bodyOf(await server.post(path, { model: "test-small", messages }));
    expect(body).toMatchObject({
      object: "chat.completion",
      created: 1_700_000_001,
      model: "test-small",
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "Hello, 漢字!", refusal: null },
          logprobs: null,
          finish_reason: "stop",
          stop_reason: null,
        },
      ],
      usage: {
        prompt_tokens: 21,
        completion_tokens: 15,
        total_tokens: 36,
        prompt_tokens_details: { cached_tokens: 16 },
      },
    });
    expect(body.id).toStartWith("chatcmpl-");
  });

  test("says that nothing was cached when nothing was", async () => {
    const server = serverUnderTest();
    const body = await bodyOf(await server.post(path, { messages, max_tokens: 1 }));
    expect(body.usage.prompt_tokens_details).toEqual({ cached_tokens: 0 });
  });

  test("counts the prompt once and every choice's tokens", async () => {
    const server = serverUnderTest();
    const body = await bodyOf(await server.post(path, { messages, max_tokens: 3, n: 4, ignore_eos: true }));
    expect(body.choices.map((choice: Json) => choice.index)).toEqual([0, 1, 2, 3]);
    expect(body.usage).toMatchObject({ prompt_tokens: 21, completion_tokens: 12 });
  });

  test("ends at a stop string, tells the engine how many tokens stay, and counts no more", async () => {
    const server = serverUnderTest({ script: { tokensPerChunk: 4 } });
    await script("one STOP two", server);
    const body = await bodyOf(await server.post(path, { messages, stop: ["STOP"] }));
    expect(body.choices[0]).toMatchObject({
      message: { content: "one " },
      finish_reason: "stop",
      stop_reason: "STOP",
    });
    expect(body.usage.completion_tokens).toBe(8);
    expect(server.engine.events.at(-1)).toEqual({ kind: "finish", id: 1, choice: 0, keptTokens: 8 });
  });

  test("gives log-probabilities whose bytes are the exact text", async () => {
    const server = serverUnderTest();
    await script("naïve 🧪", server, false);
    const body = await bodyOf(
      await server.post(path, { messages, max_tokens: 11, logprobs: true, top_logprobs: 3 }),
    );
    const { content } = body.choices[0].logprobs;
    expect(Buffer.from(content.flatMap((entry: Json) => entry.bytes)).toString()).toBe("naïve 🧪");
    for (const entry of content) {
      const values = entry.top_logprobs.map((top: Json) => top.logprob);
      expect(values).toEqual(values.toSorted((a: number, b: number) => b - a));
      expect(values).toHaveLength(3);
    }
  });

  test("holds no number that JSON cannot say", async () => {
    const server = serverUnderTest({
      script: { logprob: (_position, id) => (id % 2 === 0 ? Number.NEGATIVE_INFINITY : Number.NaN) },
    });
    const response = await server.post(path, { messages, max_tokens: 2, logprobs: true, top_logprobs: 5 });
    const text = await response.text();
    expect(text).not.toMatch(/null,"bytes"|NaN|Infinity/);
    expect(JSON.parse(text).choices[0].logprobs.content[0].logprob).toBe(-9999);
  });

  test("names tokens by id and returns ids where that is asked for", async () => {
    const server = serverUnderTest();
    await script("ab", server);
    const fields = {
      return_tokens_as_token_ids: true,
      return_token_ids: true,
      logprobs: true,
      prompt_logprobs: 0,
    };
    const body = await bodyOf(await server.post(path, { messages, ...fields }));
    expect(body.choices[0].token_ids).toEqual([64, 65, 257]);
    expect(body.choices[0].logprobs.content[0].token).toBe("token_id:64");
    expect(body.prompt_token_ids).toHaveLength(21);
    expect(body.prompt_logprobs).toHaveLength(21);
    expect(body.prompt_logprobs[0]).toBeNull();
  });
});

describe("a streamed chat completion", () => {
  const variants: readonly (readonly [string, object, number])[] = [
    ["one token a step", { max_tokens: 40 }, 1],
    ["several tokens a step", { max_tokens: 40 }, 3],
    ["two choices", { max_tokens: 9, n: 2, ignore_eos: true }, 2],
    ["a stop string", { stop: ["字 🧪"] }, 2],
    ["a limit inside a character", { max_tokens: 8 }, 1],
    ["a limit inside a possible stop string", { max_tokens: 9, stop: ["字zzz"] }, 2],
    ["log-probabilities", { max_tokens: 20, logprobs: true, top_logprobs: 2 }, 4],
    ["token ids", { max_tokens: 20, return_token_ids: true, stop: ["字"] }, 4],
    ["a least length", { min_tokens: 14, stop: ["na", "字"] }, 2],
  ];

  test.each(variants)("says the same as the whole answer with %s", async (_name, fields, tokensPerChunk) => {
    const server = serverUnderTest({ script: { tokensPerChunk, cachedTokens: 16 } });
    await script("naïve 漢字 🧪🏽 क्षि ﷺ", server);
    const whole = await bodyOf(await server.post(path, { messages, ...fields }));
    const streamed = await readEvents(
      await server.post(path, { messages, ...fields, stream: true, stream_options: { include_usage: true } }),
    );
    const result = joined(streamed.events);
    expect(streamed.isDone).toBe(true);
    expect(result.usage).toEqual(whole.usage);
    whole.choices.forEach((choice: Json, index: number) => {
      expect(result.choices[index]).toEqual({
        text: choice.message.content,
        finish_reason: choice.finish_reason,
        logprobs: choice.logprobs?.content ?? [],
        token_ids: choice.token_ids ?? [],
      });
    });
    expect(streamed.raw.isWellFormed()).toBe(true);
  });

  test("begins every choice with its role and ends it with a reason", async () => {
    const server = serverUnderTest();
    const { events } = await readEvents(
      await server.post(path, { messages, max_tokens: 2, n: 2, stream: true }),
    );
    for (const index of [0, 1]) {
      const own = events.flatMap((event) => event.choices).filter((choice: Json) => choice.index === index);
      expect(own[0].delta).toEqual({ role: "assistant", content: "" });
      expect(own.map((choice: Json) => choice.finish_reason)).toEqual([
        ...own.slice(1).map(() => null),
        "length",
      ]);
    }
    expect(events.every((event) => !("usage" in event))).toBe(true);
  });

  test("reports its usage in one last chunk, or in every chunk", async () => {
    const server = serverUnderTest();
    await script("abc", server);
    const ask = async (options: object) =>
      readEvents(await server.post(path, { messages, max_tokens: 3, stream: true, stream_options: options }));
    const atEnd = (await ask({ include_usage: true })).events;
    expect(atEnd.slice(0, -1).every((event) => event.usage === null)).toBe(true);
    expect(atEnd.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 3 } });
    const everywhere = (await ask({ include_usage: true, continuous_usage_stats: true })).events;
    expect(everywhere.map((event) => event.usage.completion_tokens)).toEqual([1, 1, 2, 3, 3]);
  });

  test("is one line of JSON an event", async () => {
    const server = serverUnderTest();
    await script("line\none\r\n\u2028two", server);
    const { raw, events } = await readEvents(await server.post(path, { messages, stream: true }));
    expect(raw.split("\n").every((line) => line === "" || line.startsWith("data: "))).toBe(true);
    expect(joined(events).choices[0].text).toBe("line\none\r\n\u2028two");
  });
});
