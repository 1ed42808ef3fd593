/** `granary bench serve` against servers that answer well, badly or not at all. */
import { afterEach, describe, expect, test } from "bun:test";
import { dispatch } from "../../../src/cli/dispatch";
import { fakeRuntime } from "../../support/fake-runtime";
import { removeTemporaryDirectories } from "../../support/temporary-directory";

removeTemporaryDirectories();

type Answer = (request: Request, index: number) => Response | Promise<Response>;

const servers: Bun.Server<undefined>[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.stop(true);
});

const models = { data: [{ id: "first" }, { id: "second" }] };
const chunk = { choices: [{ text: "a" }] };
const usage = { choices: [], usage: { prompt_tokens: 6, completion_tokens: 2 } };

function stream(events: readonly unknown[], lineEnd = "\n"): Response {
  const text = [...events, "[DONE]"]
    .map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}${lineEnd}${lineEnd}`)
    .join("");
  return new Response(text, { headers: { "content-type": "text/event-stream" } });
}

/** The address of a server with a listing of models and this answer to completions. */
function serverWith(complete: Answer, listing: Answer = () => Response.json(models)): string {
  let count = 0;
  const server = Bun.serve({
    port: 0,
    fetch: (request) =>
      request.url.endsWith("/v1/models") ? listing(request, 0) : complete(request, count++),
  });
  servers.push(server);
  return `http://127.0.0.1:${server.port}`;
}

async function load(url: string, ...args: string[]) {
  const runtime = { ...fakeRuntime(), clockMs: () => performance.now() };
  const work = ["--num-prompts", "4", "--max-concurrency", "1", "--input-len", "6", "--output-len", "2"];
  const code = await dispatch(["bench", "serve", "--base-url", url, ...work, "--json", ...args], runtime);
  const { out, err } = runtime.printed;
  return { code, err, figures: out === "" ? undefined : JSON.parse(out) };
}

describe("bench serve", () => {
  test("accepts every line end that events may have", async () => {
    for (const lineEnd of ["\n", "\r\n", "\r"]) {
      const { code, figures, err } = await load(serverWith(() => stream([chunk, chunk, usage], lineEnd)));
      expect([code, err]).toEqual([0, ""]);
      expect(figures).toMatchObject({ requests: 4, failed: 0, promptTokens: 24, generatedTokens: 8 });
    }
  });

  test("counts whatever spoils one request as that request's failure, with its reason", async () => {
    const spoilt: readonly [() => Response, string][] = [
      [() => stream([chunk, { error: { message: "out of luck" } }]), "out of luck"],
      [() => stream([chunk, { hello: 1 }]), '{"hello":1}'],
      [() => stream([chunk, "not json"]), "not json"],
      [() => stream([chunk, "null"]), "null"],
      [() => stream([{ choices: [], usage: {} }]), '"usage":{}'],
      [() => stream([chunk]), "without its usage"],
      [() => new Response(null), "without its usage"],
      [() => Response.json({ error: { message: "too many" } }, { status: 429 }), "answered 429: too many"],
      [() => new Response("<h1>Bad Gateway</h1>", { status: 502 }), "answered 502: <h1>Bad Gateway</h1>"],
    ];
    for (const [answer, reason] of spoilt) {
      const good = () => stream([chunk, chunk, usage]);
      const { code, figures, err } = await load(serverWith((_, index) => (index === 1 ? answer() : good())));
      expect([code, figures.failed, figures.promptTokens]).toEqual([1, 1, 18]);
      expect(err).toStartWith("granary: 1 request failed: ");
      expect(err).toContain(reason);
    }
  });

  test("goes on when the server goes away in the middle, and names the address", async () => {
    const url = serverWith((_, index) => {
      if (index === 2) servers[0]?.stop(true);
      return stream([chunk, chunk, usage]);
    });
    const { code, figures, err } = await load(url);
    expect([code, figures.failed, figures.generatedTokens]).toEqual([1, 2, 4]);
    expect(err).toContain(`${url}/v1/completions: `);
  });

  test("without a listing of models fails with the address, the status and the server's words", async () => {
    const listings: readonly [Answer, string][] = [
      [() => Response.json({ error: { message: "no key" } }, { status: 401 }), "answered 401: no key"],
      [() => new Response("nothing here", { status: 404 }), "answered 404: nothing here"],
      [() => new Response("<html>"), "lists no models: <html>"],
      [() => Response.json({ data: [] }), "serves no model"],
    ];
    for (const [listing, words] of listings) {
      const url = serverWith(() => stream([]), listing);
      const { code, err, figures } = await load(url);
      expect([code, err, figures]).toEqual([1, `granary: ${url}/v1/models ${words}\n`, undefined]);
    }
    const { code, err } = await load("http://127.0.0.1:1");
    expect(code).toBe(1);
    expect(err).toStartWith("granary: http://127.0.0.1:1/v1/models: ");
  });

  test("loads the model that --model names, else the first, and refuses one that is not served", async () => {
    const seen: unknown[] = [];
    const url = serverWith(async (request) => {
      seen.push(((await request.json()) as { model: string }).model);
      return stream([chunk, chunk, usage]);
    });
    await load(url);
    expect((await load(url, "--model", "second")).figures.model).toBe("second");
    expect(seen).toEqual([...Array(4).fill("first"), ...Array(4).fill("second")]);
    const { code, err } = await load(url, "--model", "third");
    expect([code, err]).toEqual([
      2,
      `granary: --model third is not served by ${url}, which has 'first', 'second'\n`,
    ]);
  });

  test("opens no more connections than there are prompts", async () => {
    const { code } = await load(
      serverWith(() => stream([chunk, usage])),
      "--max-concurrency",
      "999999999",
    );
    expect(code).toBe(0);
  }, 2_000);
});
