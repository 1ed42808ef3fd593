/**
 * What clients are told when something is wrong: one error shape, the right status, and nothing left behind.
 */
import { describe, expect, test } from "bun:test";
import { GranaryError } from "../../src/assert";
import { maxRequestBodyBytes } from "../../src/limits";
import { readJsonBody } from "../../src/server/http/json-body";
import { byteLevel } from "../tokenizer/tokenizer-builder";
import { FakeEngine } from "./fake-engine";
import { bodyOf, readEvents, serverUnderTest } from "./server-under-test";

const messages = [{ role: "user", content: "hi" }];
const path = "/v1/chat/completions";

/** Status and error body; fails unless the body is exactly an OpenAI error. */
async function errorOf(response: Response | Promise<Response>) {
  const answered = await response;
  const body = await bodyOf(answered);
  expect(Object.keys(body)).toEqual(["error"]);
  expect(Object.keys(body.error).sort()).toEqual(["code", "message", "param", "type"]);
  expect(answered.headers.get("x-request-id")).toBeTruthy();
  return { status: answered.status, headers: answered.headers, ...body.error };
}

describe("a body that is no request", () => {
  const server = serverUnderTest();
  const send = (body: BodyInit, headers: Record<string, string> = { "Content-Type": "application/json" }) =>
    errorOf(server.request(path, { method: "POST", headers, body }));

  test.each(["", "{", '{"messages":[],}', "[".repeat(20_000), "null", '"text"', "[]", "NaN"])(
    "%.20s is refused with 400",
    async (text) => {
      expect((await send(text)).status).toBe(400);
    },
  );

  test("of invalid UTF-8 is refused with 400", async () => {
    expect((await send(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d))).status).toBe(400);
  });

  test.each([
    { "Content-Type": "text/plain" },
    { "Content-Type": "application/x-www-form-urlencoded" },
    { "Content-Type": "application/json; charset=utf-16" },
    { "Content-Type": "application/json", "Content-Encoding": "gzip" },
  ])("sent as %j is refused with 415", async (headers) => {
    expect((await send('{"messages":[]}', headers as Record<string, string>)).status).toBe(415);
  });

  test("announced too large is refused with 413 before it is read", async () => {
    const headers = { "Content-Type": "application/json", "Content-Length": String(maxRequestBodyBytes + 1) };
    expect(await send("{}", headers)).toMatchObject({ status: 413, code: "request_too_large" });
  });

  test("that grows too large without saying so is refused with 413", async () => {
    const block = new Uint8Array(1024 * 1024).fill(0x20);
    let sent = 0;
    const body = new ReadableStream({
      pull(controller) {
        sent += block.length;
        if (sent > maxRequestBodyBytes + 2 * block.length) controller.close();
        else controller.enqueue(block);
      },
    });
    expect((await send(body as BodyInit)).status).toBe(413);
  });

  test("that only trickles is given up with 408", async () => {
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode("{")),
    });
    const headers = { "Content-Type": "application/json" };
    const request = new Request("http://localhost/", { method: "POST", headers, body });
    await expect(readJsonBody(request, 30)).rejects.toMatchObject({
      httpStatus: 408,
      headers: { Connection: "close" },
    });
  });

  test("pollutes no prototype and serves the next request", async () => {
    const fields = JSON.stringify({ messages, max_tokens: 1 }).slice(1);
    const body = `{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},${fields}`;
    const response = await server.request(path, {
      method: "POST",
      headers: { "Content-Type": "application/json; charset=utf-8" },
      body,
    });
    expect(response.status).toBe(200);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    expect((await server.post(path, { messages, max_tokens: 1 })).status).toBe(200);
    expect(server.errors).toEqual([]);
  });

  test("nested too deeply is refused with 400", async () => {
    const lists = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    const deep = `{"messages":[{"role":"user","content":"x","extra":${lists}}]}`;
    expect((await send(deep)).status).toBe(400);
  });
});

describe("a body that costs more to complain about than to read", () => {
  const server = serverUnderTest();
  const depth = 100_000;
  const lists = `${"[".repeat(depth)}${"]".repeat(depth)}`;
  const objects = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
  const routes = [path, "/v1/completions", "/v1/responses", "/tokenize", "/detokenize"];
  const bodies = [
    lists,
    `{"prompt":${lists},"messages":${lists},"input":${lists},"tokens":${lists}}`,
    `{"prompt":${objects},"messages":[${objects}],"input":${objects},"tokens":${objects}}`,
    `{"model":5,"extra":${objects}}`,
    `{"model":5,"extra":"${"x".repeat(8_000_000)}"}`,
    `{"prompt":[${"[[1,1,1]],".repeat(100_000)}5],"messages":[${"5,".repeat(500_000)}5],"model":5}`,
  ];

  test.each(routes)("is refused at once by %s", async (route) => {
    for (const body of bodies) {
      const beginMs = performance.now();
      const error = await errorOf(server.post(route, body));
      expect(error.status).toBe(400);
      expect(performance.now() - beginMs).toBeLessThan(2_000);
    }
  });

  test("names the field in it that will not do", async () => {
    const param = async (body: object) => (await errorOf(server.post(path, body))).param;
    expect(await param({ messages, n: "2" })).toBe("n");
    expect(await param({ messages: [{ role: "user" }, { role: 5 }] })).toBe("messages[1].role");
    expect(await param({ messages, stream_options: { include_usage: 1 } })).toBe("stream_options");
    expect(await param({})).toBe("messages");
  });

  test("is still described by its fields in the API's description", async () => {
    const { paths } = await bodyOf(await server.get("/openapi"));
    for (const route of routes) {
      const { schema } = paths[route].post.requestBody.content["application/json"];
      expect(schema.type).toBe("object");
      expect(Object.keys(schema.properties)).toContain("model");
    }
  });
});

describe("a wrong address", () => {
  const server = serverUnderTest();

  test("is 404, a wrong method 405 with what is allowed, another model 404", async () => {
    expect(await errorOf(server.get("/v1/nothing"))).toMatchObject({ status: 404, code: "unknown_path" });
    const wrongMethod = await errorOf(server.get(path));
    expect(wrongMethod).toMatchObject({ status: 405, code: "method_not_allowed" });
    expect(wrongMethod.headers.get("allow")).toBe("POST");
    expect((await errorOf(server.request("/v1/models/x/y", { method: "PUT" }))).status).toBe(405);
    expect(await errorOf(server.post(path, { model: "gpt-4", messages }))).toMatchObject({
      status: 404,
      param: "model",
      code: "model_not_found",
    });
    expect((await errorOf(server.get("/v1/models/gpt-4"))).code).toBe("model_not_found");
  });

  test("of the WebSocket without an upgrade is 426", async () => {
    expect(await errorOf(server.get("/v1/responses"))).toMatchObject({
      status: 426,
      code: "upgrade_required",
    });
  });
});

describe("a chat template that refuses", () => {
  test("is a 400 with its own words and no paths", async () => {
    const tokenizer = byteLevel({ chatTemplate: "{{ raise_exception('roles must alternate') }}" });
    const server = serverUnderTest({ tokenizer });
    expect(await errorOf(server.post(path, { messages }))).toMatchObject({
      status: 400,
      message: "roles must alternate",
      param: "messages",
    });
  });

  test("or is missing is a 400 that says what to use instead", async () => {
    const server = serverUnderTest({ tokenizer: byteLevel({ chatTemplate: undefined }) });
    const error = await errorOf(server.post(path, { messages }));
    expect(error).toMatchObject({ status: 400, code: "chat_template_missing" });
    expect(error.message).toContain("/v1/completions");
  });
});

describe("an engine", () => {
  test("that is loading or leaving answers 503 with Retry-After and is not ready", async () => {
    for (const state of ["loading", "draining"] as const) {
      const engine = new FakeEngine();
      engine.state = state;
      const server = serverUnderTest({ engine });
      const error = await errorOf(server.post(path, { messages }));
      expect({ status: error.status, retryAfter: error.headers.has("retry-after") }).toEqual({
        status: 503,
        retryAfter: true,
      });
      expect((await server.get("/health/ready")).status).toBe(503);
      expect((await server.get("/health/live")).status).toBe(200);
      expect((await server.get("/v1/models")).status).toBe(200);
    }
  });

  test("that has failed or makes no progress is not ready", async () => {
    const engine = new FakeEngine();
    const server = serverUnderTest({ engine });
    expect((await server.get("/health/ready")).status).toBe(200);
    engine.ageMs = 60_000;
    expect(await bodyOf(await server.get("/health"))).toEqual({ status: "stuck", progress_age_seconds: 60 });
    engine.ageMs = 0;
    engine.state = "failed";
    engine.failure = "the device is gone";
    expect(await bodyOf(await server.get("/health"))).toMatchObject({ failure: "the device is gone" });
    expect(await errorOf(server.post(path, { messages }))).toMatchObject({
      status: 503,
      code: "engine_failed",
    });
  });

  test("that goes away at the very last moment answers 503 and leaves no stream open", async () => {
    const engine = new FakeEngine();
    const server = serverUnderTest({ engine });
    engine.submit = () => {
      throw new GranaryError("engine_not_ready", "the engine is draining");
    };
    for (const stream of [false, true]) {
      expect((await errorOf(server.post(path, { messages, stream }))).status).toBe(503);
    }
    const metrics = await (await server.get("/metrics")).text();
    expect(metrics).toContain('granary_requests_total{outcome="end"} 0');
  });

  test("that fails before the first token gives a status, streamed or not", async () => {
    const server = serverUnderTest({
      script: { failure: { atToken: 0, message: "logits are not numbers" } },
    });
    for (const stream of [false, true]) {
      expect(await errorOf(server.post(path, { messages, stream }))).toMatchObject({
        status: 500,
        message: "logits are not numbers",
        type: "server_error",
      });
    }
  });

  test.each([1, 50])(
    "that fails at token %d ends the stream with an error event and without [DONE]",
    async (atToken) => {
      const server = serverUnderTest({
        script: { failure: { atToken, message: "broken" }, tokens: () => [64, 65] },
      });
      const response = await server.post(path, { messages, stream: true });
      expect(response.status).toBe(200);
      const { events, isDone } = await readEvents(response);
      expect(isDone).toBe(false);
      expect(events.at(-1)).toEqual({
        error: { message: "broken", type: "server_error", param: null, code: "engine_error" },
      });
      expect(server.engine.numLiveRequests).toBe(0);
      const metrics = await (await server.get("/metrics")).text();
      expect(metrics).toContain('granary_requests_total{outcome="error"} 1');
    },
  );

  test("whose news cannot be told fails that request alone", async () => {
    const engine = new FakeEngine({ tokenDelayMs: 2 });
    const server = serverUnderTest({ engine });
    const submit = engine.submit.bind(engine);
    engine.submit = (request, onChunk) =>
      submit(request, (chunk) =>
        onChunk(request.logprobs === undefined ? chunk : { ...chunk, logprobs: { ids: 3 } as never }),
      );
    const [other, whole, streamed] = await Promise.all([
      server.post(path, { messages, max_tokens: 5 }),
      errorOf(server.post(path, { messages, max_tokens: 5, logprobs: true, stream: true })),
      errorOf(server.post("/v1/responses", { input: "x", include: ["message.output_text.logprobs"] })),
    ]);
    expect([other.status, whole.status, streamed.status]).toEqual([200, 500, 500]);
    expect(engine.numLiveRequests).toBe(0);
    expect(server.errors).toHaveLength(2);
  });

  test("that fails in one choice ends all of them", async () => {
    const server = serverUnderTest({ script: { failure: { atToken: 2, message: "broken" } } });
    expect((await errorOf(server.post(path, { messages, n: 3 }))).status).toBe(500);
    expect(server.engine.numLiveRequests).toBe(0);
  });
});

describe("the description of the interface", () => {
  test("names every route with what it takes, and fetches nothing from elsewhere", async () => {
    const server = serverUnderTest();
    const response = await server.get("/openapi");
    const text = await response.text();
    const { paths, info } = JSON.parse(text);
    expect(info).toMatchObject({ title: "granary", version: "1.2.3" });
    for (const { method, path: route } of server.app.routes) {
      if (method === "WS" || route.includes("*") || route === "/openapi") continue;
      const operation = paths[route.replace(":name", "{name}")][method.toLowerCase()];
      expect(operation.summary.length).toBeGreaterThan(5);
      if (method !== "POST") continue;
      const { schema } = operation.requestBody.content["application/json"];
      expect(Object.keys(schema.properties)).toContain("model");
    }
    expect(text).not.toContain("http");
  });
});

describe("metrics", () => {
  test("are Prometheus text with our own names, each described once", async () => {
    const server = serverUnderTest();
    await server.post(path, { messages, max_tokens: 3 });
    await server.post(path, { messages, max_tokens: -3 });
    await Bun.sleep(10); // Answers are counted when they are out.
    const response = await server.get("/metrics");
    expect(response.headers.get("content-type")).toStartWith("text/plain; version=0.0.4");
    const text = await response.text();
    const samples = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    for (const line of samples) expect(line).toMatch(/^granary_[a-z_]+(\{[a-z]+="[^"]*"\})? [-+.e0-9]+$/);
    const described = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name);
    expect(new Set(described).size).toBe(described.length);
    expect(text).toContain("granary_time_to_first_token_seconds_count 1");
    expect(text).toContain("granary_inter_token_seconds_count 2");
    expect(text).toContain('granary_requests_total{outcome="end"} 1');
    expect(text).toContain('granary_choices_finished_total{reason="length"} 1');
    expect(text).toContain('granary_http_responses_total{status="4xx"} 1');
  });
});

describe("a request id", () => {
  test("is the client's where it is a plain word, and a new one otherwise", async () => {
    const server = serverUnderTest();
    const idFor = async (given: string) =>
      (await server.get("/version", { "X-Request-Id": given })).headers.get("x-request-id");
    expect(await idFor("trace-1.2:3")).toBe("trace-1.2:3");
    expect(await idFor("<script>")).toMatch(/^[0-9a-f-]{36}$/);
    expect(await idFor("x".repeat(200))).toMatch(/^[0-9a-f-]{36}$/);
  });
});
