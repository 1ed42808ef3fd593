/**
 * The official client against the real executable: streams, cancels, goes on over WebSocket, and finds its
 * cache.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { metricValue, settled } from "../support/metrics";
import { type ServerProcess, startReferenceServer } from "../support/server-process";

const model = "llama";
const prefixGranularity = 64;
let server: ServerProcess;
let client: OpenAI;

beforeAll(async () => {
  server = await startReferenceServer(model, [
    "--num-lcm-blocks",
    "400",
    "--prefix-granularity",
    String(prefixGranularity),
  ]);
  client = new OpenAI({ apiKey: "none", baseURL: `${server.url}/v1`, maxRetries: 0 });
});

afterAll(async () => {
  await server?.end("SIGKILL");
});

/** Sampled with a seed, so that every run of the same question gives the same answer. */
function question(content: string, maxTokens = 40) {
  return {
    model,
    messages: [{ role: "user" as const, content }],
    max_tokens: maxTokens,
    temperature: 0,
    ignore_eos: true,
  };
}

describe("the official client", () => {
  test("lists the model", async () => {
    const models = await client.models.list();
    expect(models.data.map(({ id }) => id)).toEqual([model]);
    expect((await client.models.retrieve(model)).id).toBe(model);
  });

  test("streams what it gets whole, and the second time most of it comes from the cache", async () => {
    const ask = question("What does a granary keep, and for whom? ".repeat(4));
    const whole = await client.chat.completions.create(ask);
    expect(whole.usage?.prompt_tokens_details?.cached_tokens).toBe(0);
    const stream = await client.chat.completions.create({
      ...ask,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? "";
      usage = chunk.usage ?? usage;
    }
    expect(text).toBe(whole.choices[0]?.message.content as string);
    expect(usage?.completion_tokens).toBe(40);
    const promptTokens = whole.usage?.prompt_tokens as number;
    const cachedTokens = usage?.prompt_tokens_details?.cached_tokens as number;
    expect(cachedTokens).toBe(Math.floor((promptTokens - 1) / prefixGranularity) * prefixGranularity);
  });

  test("cancels a stream and the engine is idle within half a second", async () => {
    const stream = await client.chat.completions.create({ ...question("Count on.", 3000), stream: true });
    let chunks = 0;
    for await (const _ of stream) if (++chunks === 5) break;
    const beginMs = performance.now();
    await settled(server.url, "granary_requests_live", 0, 2000);
    expect(performance.now() - beginMs).toBeLessThan(700);
    await settled(server.url, "granary_requests_decoding", 0, 1000);
    expect(await metricValue(server.url, "granary_cache_blocks_active")).toBe(0);
  });

  test("reads errors as errors", async () => {
    const failure = async (ask: ReturnType<typeof question>) =>
      client.chat.completions.create(ask).then(
        () => undefined,
        (error) => error,
      );
    expect(await failure({ ...question("x"), model: "gpt-4" })).toMatchObject({
      status: 404,
      code: "model_not_found",
    });
    expect(await failure({ ...question("x"), max_tokens: -1 })).toMatchObject({
      status: 400,
      param: "max_tokens",
    });
    expect(await failure(question("x".repeat(5000)))).toMatchObject({
      status: 400,
      code: "context_length_exceeded",
    });
  });

  test("continues responses over its WebSocket, each on the cache of the one before", async () => {
    const socket = new ResponsesWS(client);
    const messages = socket.stream()[Symbol.asyncIterator]();
    const respond = async (fields: object): Promise<OpenAI.Responses.Response> => {
      const settings = { model, max_output_tokens: 24, temperature: 0, ignore_eos: true };
      socket.sendRaw(JSON.stringify({ type: "response.create", ...settings, ...fields }));
      for (;;) {
        const { value } = await messages.next();
        if (value?.type === "error") throw value.error;
        if (value?.type !== "message") continue;
        if (value.message.type === "response.completed" || value.message.type === "response.incomplete") {
          return value.message.response;
        }
      }
    };
    const first = await respond({ input: "Tell me how grain was stored in the old days. ".repeat(3) });
    expect(first.usage?.output_tokens).toBe(24);
    const second = await respond({ input: "And today?", previous_response_id: first.id });
    const firstTokens = (first.usage?.input_tokens as number) + 24;
    expect(second.usage?.input_tokens).toBeGreaterThan(firstTokens);
    expect(second.usage?.input_tokens_details.cached_tokens).toBeGreaterThan(100);
    const warm = await respond({ input: "A prompt to be asked about soon. ".repeat(5), generate: false });
    expect(warm.output).toEqual([]);
    const third = await respond({ input: "What now?", previous_response_id: warm.id });
    const warmTokens = warm.usage?.input_tokens as number;
    expect(third.usage?.input_tokens_details.cached_tokens).toBeGreaterThan(warmTokens - 64);
    socket.close();
  });

  test("creates a response over HTTP, whole and streamed", async () => {
    const fields = { model, input: "Hello", max_output_tokens: 12, temperature: 0 };
    const whole = await client.responses.create(fields);
    const events = await client.responses.create({ ...fields, stream: true });
    let text = "";
    for await (const event of events) if (event.type === "response.output_text.delta") text += event.delta;
    expect(text).toBe(whole.output_text);
  });
});
