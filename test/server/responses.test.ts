/**
 * The Responses API: over HTTP as one object or as typed events, over WebSocket with chains, warm-ups and
 * cancelling.
 */
import { afterAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { maxChainedResponses } from "../../src/limits";
import { ResponseChain } from "../../src/server/responses/response-chain";
import { ResponsesConnection } from "../../src/server/responses/responses-connection";
import { bodyOf, type Json, readEvents, serverUnderTest } from "./server-under-test";

const path = "/v1/responses";

async function serverSaying(text: string, script = {}) {
  const server = serverUnderTest({ script });
  const ids = [...(await server.tokenizer.encodePrompt(text, false)), 257];
  server.engine.script = { ...server.engine.script, tokens: () => ids };
  return server;
}

/** The text of the prompt that the engine got last. */
function lastPrompt(server: Awaited<ReturnType<typeof serverSaying>>): string {
  const tokens = [...(server.engine.requests.at(-1)?.tokens ?? [])];
  return Buffer.concat(tokens.map((id) => server.tokenizer.vocabulary.entry(id).bytes)).toString();
}

describe("POST /v1/responses", () => {
  test("answers with a response object", async () => {
    const server = await serverSaying("Hello!", { cachedTokens: 16 });
    const body = await bodyOf(
      await server.post(path, {
        model: "test-small",
        input: "hi",
        instructions: "Be kind.",
        metadata: { a: "b" },
      }),
    );
    expect(body).toMatchObject({
      object: "response",
      status: "completed",
      error: null,
      incomplete_details: null,
      model: "test-small",
      instructions: "Be kind.",
      metadata: { a: "b" },
      previous_response_id: null,
      output: [
        {
          type: "message",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: "Hello!", annotations: [] }],
        },
      ],
      usage: { input_tokens_details: { cached_tokens: 16 }, output_tokens: 7 },
    });
    expect(lastPrompt(server)).toBe(
      "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("is incomplete at its limit", async () => {
    const server = await serverSaying("Hello!");
    const body = await bodyOf(await server.post(path, { input: "hi", max_output_tokens: 3 }));
    expect(body).toMatchObject({
      status: "incomplete",
      incomplete_details: { reason: "max_output_tokens" },
      output: [{ status: "incomplete", content: [{ text: "Hel" }] }],
    });
  });

  test("reads messages, calls and their results", async () => {
    const server = await serverSaying("x");
    await server.post(path, {
      input: [
        { role: "developer", content: [{ type: "input_text", text: "rules" }] },
        { type: "message", role: "user", content: "go" },
        { type: "reasoning", summary: [] },
        { type: "function_call", call_id: "c", name: "f", arguments: "{}" },
        { type: "function_call_output", call_id: "c", output: "42" },
      ],
    });
    expect(lastPrompt(server)).toBe(
      "<|im_start|>system\nrules<|im_end|>\n<|im_start|>user\ngo<|im_end|>\n" +
        "<|im_start|>assistant\n<|im_end|>\n<|im_start|>tool\n42<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test.each([
    [{}, "input"],
    [{ input: 3 }, "input"],
    [{ input: [{ type: "item_reference", id: "x" }] }, "input[0].type"],
    [{ input: "x", previous_response_id: "resp_1" }, "previous_response_id"],
    [{ input: "x", background: true }, "background"],
    [{ input: "x", conversation: "c" }, "conversation"],
    [{ input: "x", text: { format: { type: "json_schema" } } }, "text.format"],
    [{ input: "x", tools: [{ type: "web_search" }] }, "tools[0]"],
    [{ input: "x", max_output_tokens: 0 }, "max_output_tokens"],
    [{ input: "x", temperature: 3 }, "temperature"],
  ])("refuses %j", async (fields, param) => {
    const server = await serverSaying("x");
    const response = await server.post(path, fields);
    expect({ status: response.status, param: (await bodyOf(response)).error.param }).toEqual({
      status: 400,
      param,
    });
  });

  test.each(["n", "prompt_logprobs"])("refuses %s, of which it could only show a part", async (field) => {
    const server = await serverSaying("Hello!");
    for (const value of [3, "3"]) {
      const response = await server.post(path, { input: "hi", [field]: value });
      expect(response.status).toBe(400);
      expect((await bodyOf(response)).error.param).toBe(field);
    }
    expect((await server.post(path, { input: "hi", [field]: null })).status).toBe(200);
    expect(server.engine.requests).toHaveLength(1);
  });

  test("streams typed, numbered events that say what the object says", async () => {
    const server = await serverSaying("Hé🧪!");
    const fields = { input: "hi", include: ["message.output_text.logprobs"], top_logprobs: 2 };
    const whole = await bodyOf(await server.post(path, fields));
    const { events, raw } = await readTyped(await server.post(path, { ...fields, stream: true }));
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
    const types = events.map((event) => event.type).filter((type) => type !== "response.output_text.delta");
    expect(types).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const text = events.map((event) => event.delta ?? "").join("");
    const final = events.at(-1).response;
    expect(text).toBe(whole.output[0].content[0].text);
    expect(final.output[0].content).toEqual(whole.output[0].content);
    expect(final.usage).toEqual(whole.usage);
    expect(events.flatMap((event) => (event.type.endsWith(".delta") ? event.logprobs : []))).toEqual(
      whole.output[0].content[0].logprobs,
    );
    expect(raw).not.toContain("[DONE]");
  });

  test("ends a stream that fails on its way with response.failed", async () => {
    const server = await serverSaying("Hello!", { failure: { atToken: 2, message: "broken" } });
    const { events } = await readTyped(await server.post(path, { input: "hi", stream: true }));
    expect(events.at(-1)).toMatchObject({
      type: "response.failed",
      response: { status: "failed", error: { message: "broken" } },
    });
  });
});

/** Events whose `event:` line must repeat their type. */
async function readTyped(response: Response) {
  const { raw } = await readEvents(response.clone());
  const events: Json[] = raw
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => {
      const [name, data] = event.split("\n");
      const parsed = JSON.parse(data.slice("data: ".length));
      expect(name).toBe(`event: ${parsed.type}`);
      return parsed;
    });
  return { raw, events };
}

describe("the WebSocket, by the official client", () => {
  const closers: (() => Promise<void>)[] = [];

  afterAll(async () => {
    for (const close of closers) await close();
  });

  async function connected(text: string, script = {}) {
    const server = await serverSaying(text, script);
    const listening = server.listen();
    const client = new OpenAI({ apiKey: "none", baseURL: `${listening.url}/v1`, maxRetries: 0 });
    const socket = new ResponsesWS(client);
    // Taken one by one: leaving a loop over it would end it.
    const messages = socket.stream()[Symbol.asyncIterator]();
    const nextMessage = async () => (await messages.next()).value;
    closers.push(async () => {
      socket.close();
      await listening.stop(true);
    });
    return {
      server,
      send: (event: object) => socket.sendRaw(JSON.stringify(event)),
      /** Events up to the one that ends a response, or up to an error. */
      async untilEnd(): Promise<Json[]> {
        const events: Json[] = [];
        for (let message = await nextMessage(); message !== undefined; message = await nextMessage()) {
          if (message.type === "error") return [...events, message.error.error];
          if (message.type !== "message") continue;
          events.push(message.message);
          if (/^response\.(completed|incomplete|failed)$/.test(message.message.type)) break;
        }
        return events;
      },
      /** The next event of this type. */
      async next(type: string): Promise<Json> {
        for (let message = await nextMessage(); message !== undefined; message = await nextMessage()) {
          if (message.type === "message" && message.message.type === type) return message.message;
        }
      },
    };
  }

  test("creates a response, and goes on from it with new input only", async () => {
    const { server, send, untilEnd } = await connected("Hello!");
    send({ type: "response.create", model: "test-small", input: "hi" });
    const first = (await untilEnd()).at(-1).response;
    expect(first.output[0].content[0].text).toBe("Hello!");
    send({ type: "response.create", input: "more", previous_response_id: first.id });
    const second = (await untilEnd()).at(-1).response;
    expect(second.previous_response_id).toBe(first.id);
    expect(lastPrompt(server)).toBe(
      "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nHello!<|im_end|>\n" +
        "<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n",
    );
  });

  test("forks a chain, and does not carry instructions over", async () => {
    const { server, send, untilEnd } = await connected("A");
    send({ type: "response.create", input: "root", instructions: "once" });
    const root = (await untilEnd()).at(-1).response.id;
    for (const input of ["left", "right"]) {
      send({ type: "response.create", input, previous_response_id: root });
      await untilEnd();
      expect(lastPrompt(server)).toBe(
        `<|im_start|>user\nroot<|im_end|>\n<|im_start|>assistant\nA<|im_end|>\n` +
          `<|im_start|>user\n${input}<|im_end|>\n<|im_start|>assistant\n`,
      );
    }
  });

  test("warms the cache up without output, under an id that can be gone on from", async () => {
    const { server, send, untilEnd } = await connected("A");
    send({ type: "response.create", input: "long context", generate: false });
    const warm = (await untilEnd()).at(-1).response;
    expect(warm).toMatchObject({ status: "completed", output: [], usage: { output_tokens: 0 } });
    expect(server.engine.requests[0].stop.maxTokens).toBe(0);
    const warmPrompt = lastPrompt(server);
    send({ type: "response.create", input: "question", previous_response_id: warm.id });
    await untilEnd();
    expect(lastPrompt(server)).toStartWith(warmPrompt);
    expect(lastPrompt(server)).toContain("question");
  });

  test("cancels the running response and goes on with the next", async () => {
    const { server, send, untilEnd, next } = await connected("A long answer that takes its time", {
      tokenDelayMs: 10,
    });
    send({ type: "response.create", input: "hi" });
    send({ type: "response.create", input: "next" });
    await next("response.output_text.delta");
    send({ type: "response.cancel" });
    const cancelled = (await untilEnd()).at(-1);
    expect(cancelled).toMatchObject({ type: "response.incomplete", response: { status: "cancelled" } });
    expect(cancelled.response.usage.output_tokens).toBeLessThan(33);
    expect(server.engine.events.some((event) => event.kind === "abort" && event.id === 1)).toBe(true);
    expect((await untilEnd()).at(-1).type).toBe("response.completed");
    expect(lastPrompt(server)).toContain("next");
  });

  test("tells errors without ending the connection", async () => {
    const { send, untilEnd } = await connected("A");
    const wrong: readonly (readonly [object, string | null])[] = [
      [
        { type: "response.create", input: "x", previous_response_id: "resp_gone" },
        "previous_response_not_found",
      ],
      [{ type: "response.create", input: "x", model: "gpt-4" }, "model_not_found"],
      [{ type: "response.create", input: "x", temperature: 9 }, null],
      [{ type: "response.create", input: 7 }, "invalid_type"],
      [{ type: "response.cancel" }, "response_not_found"],
      [{ type: "session.update" }, null],
    ];
    for (const [event, code] of wrong) {
      send(event);
      expect((await untilEnd()).at(-1)).toMatchObject({ type: "error", code });
    }
    send({ type: "response.create", input: "x" });
    expect((await untilEnd()).at(-1).type).toBe("response.completed");
  });

  test("reports an engine's failure as response.failed", async () => {
    const { send, untilEnd } = await connected("A", { failure: { atToken: 0, message: "broken" } });
    send({ type: "response.create", input: "x" });
    expect((await untilEnd()).at(-1)).toMatchObject({
      type: "response.failed",
      response: { status: "failed" },
    });
  });
});

describe("a connection whose peer does not read", () => {
  test("asks the engine for nothing when the first event cannot be sent", async () => {
    const server = await serverSaying("Hello!");
    const connection = new ResponsesConnection(server.context, { send: () => false });
    connection.receive({ type: "response.create", input: "hi" });
    await Bun.sleep(20);
    expect(server.engine.requests).toEqual([]);
  });
});

describe("the chain of a connection", () => {
  test("forgets the oldest responses when there are too many", () => {
    const chain = new ResponseChain();
    for (let index = 0; index <= maxChainedResponses; index++) {
      chain.add(`resp_${index}`, chain.messagesOf(`resp_${index - 1}`)?.slice(0, 1) ?? [], [
        { role: "user" },
      ]);
    }
    expect(chain.size).toBe(maxChainedResponses);
    expect(chain.messagesOf("resp_0")).toBeUndefined();
    expect(chain.messagesOf(`resp_${maxChainedResponses}`)).toBeDefined();
  });

  test("forgets the oldest responses when their text is too long", () => {
    const chain = new ResponseChain();
    const content = "x".repeat(6 * 1024 * 1024);
    for (const id of ["a", "b", "c"]) chain.add(id, [], [{ role: "user", content }]);
    expect(chain.messagesOf("a")).toBeUndefined();
    expect(chain.messagesOf("c")).toBeDefined();
  });
});
