/** The executable by itself: copied away, started among hostile files, drained by signals. */
import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { granaryCommand, postJson, startReferenceServer, startServer } from "../support/server-process";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const [executable] = granaryCommand() as [string];

/** Files that a development runtime would read from where it is started. */
function plantHostileFiles(directory: string): string {
  const marker = join(directory, "planted-code-ran");
  const code = `require("node:fs").writeFileSync(${JSON.stringify(marker)}, "");`;
  writeFileSync(join(directory, ".env"), "GRANARY_API_KEY=planted\nGRANARY_MAX_NUM_SEQS=nonsense\n");
  writeFileSync(join(directory, ".env.local"), "GRANARY_HOST=256.0.0.1\n");
  writeFileSync(join(directory, "planted.ts"), code);
  writeFileSync(join(directory, "bunfig.toml"), 'preload = ["./planted.ts"]\n');
  writeFileSync(join(directory, "tsconfig.json"), "{");
  writeFileSync(join(directory, "package.json"), "{");
  mkdirSync(join(directory, "node_modules/elysia"), { recursive: true });
  writeFileSync(join(directory, "node_modules/elysia/index.js"), code);
  return marker;
}

describe("the executable alone in a hostile directory", () => {
  test("serves the demo model and reads nothing that lies there", async () => {
    const directory = temporaryDirectory();
    const copy = join(directory, "granary");
    copyFileSync(executable, copy);
    const marker = plantHostileFiles(directory);
    await using server = await startServer([], { cwd: directory, executable: copy });
    const answer = await postJson<{ choices: { message: { content: string } }[] }>(
      `${server.url}/v1/chat/completions`,
      { messages: [{ role: "user", content: "Hello" }], max_tokens: 16 },
    );
    expect(answer.choices[0]?.message.content.length).toBeGreaterThan(0);
    expect(existsSync(marker)).toBe(false);
  });

  test("unpacks into one private directory and leaves one copy after many starts", async () => {
    const directory = temporaryDirectory();
    const cache = join(directory, "cache");
    for (let start = 0; start < 3; start++) {
      const child = Bun.spawn([executable, "doctor"], { env: { XDG_CACHE_HOME: cache }, stdout: "pipe" });
      expect(await child.exited).toBe(0);
    }
    const unpacked = readdirSync(join(cache, "granary"));
    expect(new Set(unpacked).size).toBe(unpacked.length);
    const libraries = unpacked.filter((name) =>
      readdirSync(join(cache, "granary", name)).includes("libgranary_cpu.so"),
    );
    expect(libraries).toHaveLength(1);
  });

  test("starts without a home, a cache or an environment", async () => {
    const directory = temporaryDirectory();
    const child = Bun.spawn([executable, "doctor"], { cwd: directory, env: {}, stdout: "pipe" });
    expect(await child.exited).toBe(0);
  });
});

describe("a termination signal", () => {
  test("lets a running stream end, refuses new work, and exits with 0", async () => {
    await using server = await startReferenceServer("llama");
    const stream = await fetch(`${server.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt: [1, 2, 3], max_tokens: 1500, ignore_eos: true, stream: true }),
    });
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    const exited = server.end("SIGTERM");
    await Bun.sleep(50);
    const refused = await fetch(`${server.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt: [1, 2, 3] }),
    });
    expect(refused.status).toBe(503);
    expect(refused.headers.get("retry-after")).not.toBeNull();
    let text = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      text += new TextDecoder().decode(part.value);
    }
    expect(text.trimEnd().endsWith("data: [DONE]")).toBe(true);
    expect(await exited).toBe(0);
  });

  test("sent twice ends at once, with an error for those that were being answered", async () => {
    await using server = await startReferenceServer("llama");
    const stream = await fetch(`${server.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ prompt: [1, 2, 3], max_tokens: 4000, ignore_eos: true, stream: true }),
    });
    const text = stream.text();
    process.kill(server.pid, "SIGTERM");
    await Bun.sleep(20);
    const startedMs = performance.now();
    await server.end("SIGTERM");
    expect(performance.now() - startedMs).toBeLessThan(2000);
    // Whoever reads is told, and not just cut off.
    const lastEvent = (await text).trimEnd().split("\n\n").at(-1) as string;
    expect(JSON.parse(lastEvent.replace(/^data: /, "")).error.code).toBe("service_unavailable");
  });
});

describe("the command line", () => {
  async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
    const child = Bun.spawn([executable, ...args], { stdout: "pipe", stderr: "pipe" });
    const [out, err] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    return { code: await child.exited, out, err };
  }

  test("answers one prompt with granary run", async () => {
    const { code, out } = await run("run", "--max-tokens", "12", "--temperature", "0", "Hello");
    expect(code).toBe(0);
    expect(out.trim().length).toBeGreaterThan(0);
    expect((await run("run", "--max-tokens", "12", "--temperature", "0", "Hello")).out).toBe(out);
  });

  test("names a wrong flag in one line and exits with 2", async () => {
    const { code, err } = await run("serve", "--no-such-flag");
    expect(code).toBe(2);
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(err).toContain("--no-such-flag");
  });

  test("names a missing model in one line and exits with 1", async () => {
    const { code, err } = await run("serve", "--model", "/no/such/model", "--port", "0");
    expect(code).toBe(1);
    expect(err.trim().split("\n")).toHaveLength(1);
    expect(err).toContain("/no/such/model");
  });
});
