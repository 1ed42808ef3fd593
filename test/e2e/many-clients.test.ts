/**
 * 200 clients at once, half of which leave, on a pool too small for all: no stream has a gap and no block is
 * lost.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { metricValue, settled } from "../support/metrics";
import { postJson, type ServerProcess, startReferenceServer } from "../support/server-process";

let server: ServerProcess;

beforeAll(async () => {
  server = await startReferenceServer("llama", ["--num-lcm-blocks", "96", "--max-num-seqs", "32"]);
});

afterAll(async () => {
  await server?.end("SIGKILL");
});

interface Answer {
  readonly choices: readonly { readonly text: string; readonly token_ids: readonly number[] }[];
}

const numClients = 200;
const maxTokens = 24;

function requestOf(client: number) {
  const shared = Array.from({ length: 48 }, (_, index) => 40 + (index % 7));
  const own = Array.from({ length: 8 + (client % 23) }, (_, index) => 60 + ((client * 31 + index * 7) % 150));
  return {
    prompt: [...shared.slice(0, 16 * (client % 4)), ...own],
    max_tokens: maxTokens,
    temperature: 0,
    ignore_eos: true,
    return_token_ids: true,
    skip_special_tokens: false,
  };
}

/** Reads a stream to its end, or leaves after `leaveAfterMs`. */
async function stream(client: number, leaveAfterMs: number | undefined) {
  const abort = new AbortController();
  const timer = leaveAfterMs === undefined ? undefined : setTimeout(() => abort.abort(), leaveAfterMs);
  try {
    const response = await fetch(`${server.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...requestOf(client), stream: true, stream_options: { include_usage: true } }),
      signal: abort.signal,
    });
    const text = await response.text();
    clearTimeout(timer);
    const events = text
      .split("\n\n")
      .filter((event) => event.startsWith("data: {"))
      .map((event) => JSON.parse(event.slice("data: ".length)));
    return {
      tokens: events.flatMap((event) => event.choices[0]?.token_ids ?? []) as number[],
      text: events.map((event) => event.choices[0]?.text ?? "").join(""),
      usage: events.at(-1).usage as { completion_tokens: number },
      isDone: text.endsWith("data: [DONE]\n\n"),
    };
  } catch (error) {
    if (abort.signal.aborted) return undefined;
    throw error;
  }
}

describe("200 clients", () => {
  test("get what each would get alone, while half of them leave", async () => {
    const streams = await Promise.all(
      Array.from({ length: numClients }, (_, client) =>
        stream(client, client % 2 === 0 ? (client * 37) % 1500 : undefined),
      ),
    );
    await settled(server.url, "granary_requests_live", 0, 5000);
    for (let client = 1; client < numClients; client += 2) {
      const streamed = streams[client];
      expect(streamed?.isDone).toBe(true);
      expect(streamed?.tokens).toHaveLength(maxTokens);
      expect(streamed?.usage.completion_tokens).toBe(maxTokens);
    }
    for (let client = 1; client < numClients; client += 14) {
      const alone = await postJson<Answer>(`${server.url}/v1/completions`, requestOf(client));
      expect(streams[client]?.tokens).toEqual([...(alone.choices[0]?.token_ids ?? [])]);
      expect(streams[client]?.text).toBe(alone.choices[0]?.text);
    }
  }, 60_000);

  test("leave a pool in which every block is empty or cached", async () => {
    await settled(server.url, "granary_cache_blocks_active", 0, 2000);
    const value = (name: string) => metricValue(server.url, `granary_cache_blocks${name}`);
    expect(await value("_available")).toBe(await value(""));
    expect(await metricValue(server.url, "granary_nan_aborts_total")).toBe(0);
  });
});
