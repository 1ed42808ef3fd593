/**
 * What only real sockets show: clients that leave, that never finish, that do not read, and those that wait
 * long.
 */
import { describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { listen } from "../../src/server/listen";
import { expectError } from "../support/expect-error";
import type { FakeScript } from "./fake-engine";
import { serverUnderTest } from "./server-under-test";

const chatPath = "/v1/chat/completions";
const messages = [{ role: "user", content: "hi" }];
const shortTimeout = { idleTimeoutSeconds: 2 };

function listeningServer(script: FakeScript, options = {}) {
  const server = serverUnderTest({ script, options });
  return { ...server, listening: server.listen() };
}

function httpRequest(path: string, body: object): string {
  const text = JSON.stringify(body);
  return (
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  );
}

/**
 * Connects, sends, and tells when the other side closed, in milliseconds, or undefined if it did not by
 * then.
 */
async function closedAfterMs(port: number, data: string, waitMs: number): Promise<number | undefined> {
  const beginMs = performance.now();
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const socket = connect(port, "127.0.0.1", () => {
    if (data !== "") socket.write(data);
  });
  socket.on("data", () => {});
  socket.on("error", () => {});
  socket.on("close", () => resolve(performance.now() - beginMs));
  const timer = setTimeout(() => resolve(undefined), waitMs);
  const result = await promise;
  clearTimeout(timer);
  socket.destroy();
  return result;
}

async function until(condition: () => boolean, limitMs: number): Promise<number> {
  const beginMs = performance.now();
  while (!condition() && performance.now() - beginMs < limitMs) await Bun.sleep(2);
  return performance.now() - beginMs;
}

function openSocket(port: number, data: string): Promise<{ socket: Socket; firstData: Promise<string> }> {
  const first = Promise.withResolvers<string>();
  const { promise, resolve } = Promise.withResolvers<{ socket: Socket; firstData: Promise<string> }>();
  const socket = connect(port, "127.0.0.1", () => {
    socket.write(data);
    resolve({ socket, firstData: first.promise });
  });
  socket.on("data", (bytes) => first.resolve(bytes.toString()));
  socket.on("error", () => {});
  return promise;
}

describe("a client that leaves", () => {
  const phases: readonly (readonly [string, FakeScript, object])[] = [
    ["while its request is queued", { firstDelayMs: 60_000 }, {}],
    ["while its streamed request is queued", { firstDelayMs: 60_000 }, { stream: true }],
    ["in the middle of an answer", { tokenDelayMs: 5 }, {}],
    ["in the middle of a stream", { tokenDelayMs: 5 }, { stream: true }],
    ["in the middle of a response", { tokenDelayMs: 5 }, { input: "hi", stream: true }],
  ];

  test.each(phases)("%s is given up within half a second", async (_name, script, fields) => {
    for (const ending of ["destroy", "resetAndDestroy", "end"] as const) {
      const server = listeningServer(script);
      const path = "input" in fields ? "/v1/responses" : chatPath;
      const request = httpRequest(path, { messages, ignore_eos: true, ...fields });
      const { socket } = await openSocket(server.listening.port, request);
      await until(() => server.engine.numLiveRequests === 1, 1000);
      await Bun.sleep(30);
      socket[ending]();
      const tookMs = await until(() => server.engine.numLiveRequests === 0, 1000);
      expect(server.engine.numLiveRequests).toBe(0);
      expect(tookMs).toBeLessThan(500);
      expect(server.engine.events.at(-1)).toEqual({ kind: "abort", id: 1 });
      socket.destroy();
      await server.listening.stop(true);
      expect(server.errors).toEqual([]);
    }
  });

  test("over the WebSocket takes its running response along", async () => {
    const server = listeningServer({ tokenDelayMs: 5 });
    const socket = new WebSocket(`${server.listening.url.replace("http", "ws")}/v1/responses`);
    await new Promise((resolve) => {
      socket.onopen = resolve;
    });
    socket.send(JSON.stringify({ type: "response.create", input: "hi", ignore_eos: true }));
    await until(() => server.engine.numLiveRequests === 1, 1000);
    (socket as WebSocket & { terminate(): void }).terminate();
    expect(await until(() => server.engine.numLiveRequests === 0, 1000)).toBeLessThan(500);
    await server.listening.stop(true);
  });
});

describe("a client that does not read", () => {
  test("loses its stream when its backlog is full, and others go on", async () => {
    const server = listeningServer({ tokensPerChunk: 250, tokens: () => [64] });
    const residentBytes = process.memoryUsage.rss();
    const fields = { messages, ignore_eos: true, stream: true, logprobs: true, top_logprobs: 20, n: 64 };
    const { socket, firstData } = await openSocket(server.listening.port, httpRequest(chatPath, fields));
    await firstData;
    socket.pause();
    await until(() => server.engine.numLiveRequests === 0, 10_000);
    expect(process.memoryUsage.rss() - residentBytes).toBeLessThan(300 * 1024 * 1024);
    expect(server.engine.events.at(-1)?.kind).toBe("abort");
    const answer = await fetch(server.listening.url + chatPath, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ messages, max_tokens: 2 }),
    });
    expect(answer.status).toBe(200);
    socket.destroy();
    await server.listening.stop(true);
  }, 20_000);
});

/** A client's text frame; the mask is all zeros, which leaves the text as it is. */
function textFrame(text: string): Buffer {
  const payload = Buffer.from(text);
  return Buffer.concat([
    Buffer.from([0x81, 0xfe, payload.length >> 8, payload.length & 0xff, 0, 0, 0, 0]),
    payload,
  ]);
}

const upgrade =
  "GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

describe("a WebSocket client that does not read", () => {
  test("loses its connection and its running response", async () => {
    const server = listeningServer({ tokensPerChunk: 250, tokens: () => [64] });
    server.engine.limits = { ...server.engine.limits, maxModelLen: 1_000_000 };
    const { socket, firstData } = await openSocket(server.listening.port, upgrade);
    expect(await firstData).toStartWith("HTTP/1.1 101");
    socket.pause();
    const body = {
      input: "hi",
      ignore_eos: true,
      include: ["message.output_text.logprobs"],
      top_logprobs: 20,
    };
    socket.write(textFrame(JSON.stringify({ type: "response.create", ...body })));
    await until(() => server.engine.numLiveRequests === 1, 1000);
    await until(() => server.engine.numLiveRequests === 0, 10_000);
    expect(server.engine.events.at(-1)?.kind).toBe("abort");
    expect(server.errors).toEqual([]);
    socket.destroy();
    await server.listening.stop(true);
  }, 20_000);
});

describe("time", () => {
  test("closes whoever never finishes a request and spares whoever waits for an answer", async () => {
    const server = listeningServer({ firstDelayMs: 9_000 }, shortTimeout);
    const { port, url } = server.listening;
    const whole = httpRequest(chatPath, { messages, max_tokens: 2 });
    const wait = (fields: object) =>
      fetch(url + chatPath, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ messages, max_tokens: 2, ...fields }),
      });
    const quick = `GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    const [closings, answer, streamed] = await Promise.all([
      Promise.all([
        closedAfterMs(port, "", 20_000),
        closedAfterMs(port, whole.slice(0, 20), 20_000),
        closedAfterMs(port, whole.slice(0, -5), 20_000),
        closedAfterMs(port, `${whole}${whole.slice(0, 20)}`, 25_000),
        closedAfterMs(port, `${quick}${whole.slice(0, 20)}`, 20_000),
        closedAfterMs(port, `${quick}${whole.slice(0, -5)}`, 20_000),
      ]),
      wait({}),
      wait({ stream: true }).then(async (response) => ({
        status: response.status,
        text: await response.text(),
      })),
    ]);
    expect(closings.every((closedMs) => closedMs !== undefined)).toBe(true);
    expect(answer.status).toBe(200);
    expect(streamed.status).toBe(200);
    expect(streamed.text).toStartWith(": keep-alive\n\n");
    expect(streamed.text).toEndWith("data: [DONE]\n\n");
    await server.listening.stop(true);
  }, 30_000);

  test("of a body over the limit is not spent: 413 comes before it is sent", async () => {
    const server = listeningServer({});
    const head =
      "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
      "Content-Length: 104857600\r\n\r\n{";
    const { firstData, socket } = await openSocket(server.listening.port, head);
    const answer = await Promise.race([firstData, Bun.sleep(1000).then(() => "nothing")]);
    expect(answer).toStartWith("HTTP/1.1 413");
    expect(answer).toContain('"code":"request_too_large"');
    socket.destroy();
    await server.listening.stop(true);
  });
});

describe("stopping", () => {
  test("lets open answers end and takes no new connection", async () => {
    const server = listeningServer({ tokenDelayMs: 20 });
    const { url } = server.listening;
    const streaming = fetch(url + chatPath, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ messages, max_tokens: 20, ignore_eos: true, stream: true }),
    });
    await until(() => server.engine.numLiveRequests === 1, 1000);
    const response = await streaming;
    const stopped = server.listening.stop();
    expect(await response.text()).toEndWith("data: [DONE]\n\n");
    await stopped;
    await expect(fetch(`${url}/version`)).rejects.toThrow();
  });
});

describe("200 streaming clients, half of which leave", () => {
  test("get gap-free streams with right usage and leave nothing behind", async () => {
    const server = listeningServer({ tokenDelayMs: 2 });
    const run = async (index: number) => {
      const content = String.fromCharCode(97 + (index % 26)).repeat(5 + (index % 40));
      const abort = new AbortController();
      const response = await fetch(server.listening.url + chatPath, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({
          messages: [{ role: "user", content }],
          max_tokens: 30,
          stream: true,
          ignore_eos: true,
          skip_special_tokens: false,
          return_token_ids: true,
          stream_options: { include_usage: true },
        }),
        signal: abort.signal,
      });
      if (index % 2 === 0) {
        setTimeout(() => abort.abort(), index % 30);
        await response.text().catch(() => "");
        return;
      }
      const events = (await response.text())
        .split("\n\n")
        .filter((event) => event.startsWith("data: {"))
        .map((event) => JSON.parse(event.slice(6)));
      const ids = events.flatMap((event) => event.choices[0]?.token_ids ?? []);
      const prompt = events[0].prompt_token_ids;
      expect(ids).toEqual(Array.from({ length: 30 }, (_, at) => prompt[at % prompt.length]));
      expect(events.at(-1).usage.completion_tokens).toBe(30);
    };
    await Promise.all(Array.from({ length: 200 }, (_, index) => run(index)));
    await until(() => server.engine.numLiveRequests === 0, 2000);
    expect(server.engine.numLiveRequests).toBe(0);
    expect(server.errors).toEqual([]);
    await server.listening.stop(true);
  });
});

describe("an address that cannot be listened on", () => {
  test("is named, with its port and the system's reason", async () => {
    const { listening, app } = listeningServer({});
    const taken = { host: "127.0.0.1", port: listening.port };
    expectError(() => listen(app, taken), "listen_failed", "127.0.0.1", String(listening.port));
    expectError(() => listen(app, { host: "256.1.1.1", port: 0 }), "listen_failed", "256.1.1.1");
    await listening.stop(true);
  });
});

describe("a request's host", () => {
  test.each(["x", "ai", "gpu", "localhost", "example.com:8000"])("may be %s", async (host) => {
    const { listening, app } = listeningServer({});
    const url = `http://${host}`;
    expect((await app.handle(new Request(`${url}/health/live`))).status).toBe(200);
    const socket = connect(listening.port, "127.0.0.1");
    const answer = Promise.withResolvers<string>();
    socket.once("data", (data) => answer.resolve(data.toString()));
    socket.write(
      `GET /v1/responses HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    expect(await answer.promise).toStartWith("HTTP/1.1 101 ");
    socket.destroy();
    await listening.stop(true);
  });
});
