/** Measures the executable from outside with the demo model on the CPU; prints one line a figure. */
import { percentile } from "../src/cli/bench/statistics";
import { executablePath } from "./build-executable";

const numStarts = 9;
const outputLen = 256;
const inputLen = 64;

interface Server {
  readonly url: string;
  readonly readyMs: number;
  stop(): Promise<void>;
}

/** Starts a server and polls until it says that it is ready. */
async function startServer(): Promise<Server> {
  const startedMs = performance.now();
  const child = Bun.spawn([executablePath, "serve", "--port", "0", "--device", "cpu"], {
    stdout: "ignore",
    stderr: "pipe",
  });
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of child.stderr) {
    text += decoder.decode(chunk, { stream: true });
    const url = / at (http:\S+) \(ready/.exec(text)?.[1];
    if (url === undefined) continue;
    const readyMs = performance.now() - startedMs;
    const stop = async () => {
      child.kill("SIGKILL");
      await child.exited;
    };
    return { url, readyMs, stop };
  }
  throw new Error(`the server did not start:\n${text}`);
}

async function measure(...args: string[]): Promise<Record<string, number>> {
  const lengths = ["--input-len", String(inputLen), "--output-len", String(outputLen), "--json"];
  const child = Bun.spawn([executablePath, "bench", ...args, ...lengths], {
    stdout: "pipe",
    stderr: "ignore",
  });
  const text = await new Response(child.stdout).text();
  if ((await child.exited) !== 0) throw new Error(`granary bench ${args.join(" ")} failed`);
  return JSON.parse(text) as Record<string, number>;
}

const print = (name: string, value: number, unit: string) =>
  console.log(`${name.padEnd(44)} ${value.toFixed(2).padStart(10)} ${unit}`);

const startsMs: number[] = [];
for (let i = 0; i < numStarts; i++) {
  const server = await startServer();
  startsMs.push(server.readyMs);
  await server.stop();
}
print("exec to ready, median", percentile(startsMs, 0.5), "ms");
print("exec to ready, slowest", Math.max(...startsMs), "ms");

const server = await startServer();
for (const streams of [1, 16]) {
  const numPrompts = String(Math.max(4, 2 * streams));
  const load = ["--base-url", server.url, "--max-concurrency", String(streams), "--num-prompts", numPrompts];
  await measure("serve", ...load);
  const http = await measure("serve", ...load, "--workload-seed", "2");
  const offline = await measure("latency", "--device", "cpu", "--batch-size", String(streams));
  const httpRate = http.generatedTokensPerSecond as number;
  print(`${streams} streams over HTTP`, httpRate, "tokens/s");
  print(`${streams} streams: time to first token, median`, http.ttftMedianMs as number, "ms");
  print(`${streams} streams: between tokens, median`, http.itlMedianMs as number, "ms");
  print(`${streams} streams in process: decode`, offline.decodeTokensPerSecond as number, "tokens/s");
  const batchTokens = streams * outputLen;
  const inProcessUs = (1000 * (offline.batchMedianMs as number)) / batchTokens;
  print(`${streams} streams: HTTP and client a token`, 1e6 / httpRate - inProcessUs, "us");
}
await server.stop();
