/** The app over a fake engine and the byte-level tokenizer, and the few calls that tests make of it. */
import { readFileSync } from "node:fs";
import type { ServerDependencies, ServerOptions } from "../../src/server/dependencies";
import { listen } from "../../src/server/listen";
import { ServerMetrics } from "../../src/server/metrics/server-metrics";
import { createServer } from "../../src/server/server";
import { Heartbeat } from "../../src/server/stream/heartbeat";
import type { ModelTokenizerOptions } from "../../src/tokenizer/model-tokenizer";
import { ModelTokenizer } from "../../src/tokenizer/model-tokenizer";
import { readTokenizerFiles } from "../../src/tokenizer/tokenizer-files";
import { FakeEngine, type FakeScript } from "./fake-engine";

const fixtures = `${import.meta.dir}/../fixtures/tokenizer/byte-level/`;

export function byteLevelTokenizer(options: ModelTokenizerOptions = {}): ModelTokenizer {
  const files = readTokenizerFiles((name) => {
    try {
      return readFileSync(fixtures + name, "utf8");
    } catch {
      return undefined;
    }
  });
  return new ModelTokenizer(files, options);
}

export interface ServerSetup {
  readonly script?: FakeScript;
  readonly engine?: FakeEngine;
  readonly options?: Partial<ServerOptions>;
  readonly tokenizer?: ModelTokenizer;
}

export function serverUnderTest(setup: ServerSetup = {}) {
  const engine = setup.engine ?? new FakeEngine(setup.script);
  const tokenizer = setup.tokenizer ?? byteLevelTokenizer();
  const errors: string[] = [];
  const dependencies: ServerDependencies = {
    engine,
    tokenizer,
    model: {
      id: "test-small",
      aliases: ["also/known-as"],
      created: 1_700_000_000,
      root: "fixtures/test-small",
    },
    options: { version: "1.2.3", apiKeys: [], maxLogprobs: 20, ...setup.options },
    clock: { monotonicMs: () => performance.now(), unixSeconds: () => 1_700_000_001 },
    log: {
      info: () => {},
      warn: () => {},
      error: (message, fields) => errors.push(`${message} ${JSON.stringify(fields)}`),
    },
  };
  const app = createServer(dependencies);
  const request = (path: string, init?: RequestInit) =>
    app.handle(new Request(`http://localhost${path}`, init));
  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    request(path, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  return {
    app,
    /** What a route is given; its metrics and heartbeat are not the app's own. */
    context: {
      ...dependencies,
      metrics: new ServerMetrics(engine, dependencies.options.version),
      heartbeat: new Heartbeat(dependencies.clock),
    },
    engine,
    tokenizer,
    /** What was logged as error: tests that expect none check it. */
    errors,
    get: (path: string, headers: Record<string, string> = {}) => request(path, { headers }),
    request,
    post,
    listen: () =>
      listen(app, {
        host: "127.0.0.1",
        port: 0,
        idleTimeoutSeconds: setup.options?.idleTimeoutSeconds ?? 30,
      }),
  };
}

/** The data of every event of a streamed answer, parsed, and the raw text. */
export async function readEvents(response: Response) {
  const raw = await response.text();
  const data = raw
    .split("\n\n")
    .filter((event) => event.startsWith("data: "))
    .map((event) => event.slice("data: ".length));
  return {
    raw,
    isDone: data.at(-1) === "[DONE]",
    events: data.filter((text) => text !== "[DONE]").map(parse),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: answers are read as clients read them
export type Json = any;

export function parse(text: string): Json {
  return JSON.parse(text);
}

export async function bodyOf(response: Response): Promise<Json> {
  return parse(await response.text());
}
