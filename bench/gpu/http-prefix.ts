/**
 * A long cached prefix over HTTP, as text: time to the first token of prefix + a few new words beside that of
 * a short prompt. Usage: bun bench/gpu/http-prefix.ts GRANARY CONFIG [prefix tokens] [flags of serve]
 */
import { percentile } from "../../src/cli/bench/statistics";
import { serverFiles, startServer } from "../support/server";

const args = process.argv.slice(2);
const [, , prefixTokens = "32768", ...flags] = args;
const { url, stop } = await startServer(serverFiles(args), "18231", flags);
const words = ["river", "mill", "barn", "wheat", "stone", "cart", "field", "oven"];
let state = 7;
const word = () => {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return words[state >>> 29] as string;
};
const sentence = (length: number) => Array.from({ length }, word).join(" ");

async function countTokens(prompt: string): Promise<number> {
  const body = JSON.stringify({ model: "bench", prompt });
  const response = await fetch(`${url}/tokenize`, { method: "POST", headers, body });
  return ((await response.json()) as { count: number }).count;
}

const headers = { "content-type": "application/json" };

/** Milliseconds to the first byte of the answer's first event, and what came from the cache. */
async function firstToken(prompt: string): Promise<{ ms: number; cached: number }> {
  const startedMs = performance.now();
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers,
    body: JSON.stringify({
      model: "bench",
      prompt,
      max_tokens: 1,
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  let [text, ms] = ["", Number.NaN];
  const decoder = new TextDecoder();
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (Number.isNaN(ms) && text.includes("data: ")) ms = performance.now() - startedMs;
  }
  return { ms, cached: Number(/"cached_tokens":(\d+)/.exec(text)?.[1] ?? 0) };
}

const perWord = (await countTokens(sentence(1000))) / 1000;
const prefix = sentence(Math.round(Number(prefixTokens) / perWord));
const newWords = Math.round(16 / perWord);
console.log(`prefix: ${await countTokens(prefix)} tokens, ${(prefix.length / 1024).toFixed(0)} KiB of text`);
await firstToken(prefix);
for (const [label, make] of [
  ["prefix + 16 new", () => `${prefix} ${sentence(newWords)}`],
  ["16 new", () => sentence(newWords)],
] as const) {
  const runs: { ms: number; cached: number }[] = [];
  for (let i = 0; i < 9; i++) runs.push(await firstToken(make()));
  const timed = runs.slice(2);
  const median = percentile(
    timed.map(({ ms }) => ms),
    0.5,
  );
  console.log(`${label}: first token after ${median.toFixed(2)} ms, ${timed.at(-1)?.cached} cached tokens`);
}
process.exit(await stop());
