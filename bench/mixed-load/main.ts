/**
 * Minutes of mixed load on a real server: arrivals, conversations, aborts, nonsense, eviction; what broke and
 * what grew. Usage: bun bench/mixed-load/main.ts GRANARY CONFIG [--minutes N] [--streams N] [flags of serve]
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { percentile } from "../../src/cli/bench/statistics";
import { serverFiles, startServer } from "../support/server";
import { converse, type Tally } from "./client";
import { Random } from "./random";

const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  allowPositionals: true,
  strict: false,
  options: {
    minutes: { type: "string", default: "10" },
    streams: { type: "string", default: "96" },
    port: { type: "string", default: "18230" },
    device: { type: "string", default: "auto" },
    "gpu-memory-utilization": { type: "string", default: "0.95" },
    "max-model-len": { type: "string", default: "40960" },
    "num-lcm-blocks": { type: "string" },
  },
});
const files = serverFiles(positionals);
const text = (name: string) => values[name] as string;
const minutes = Number(text("minutes"));
const reportEveryMs = 15_000;

const flags = ["device", "gpu-memory-utilization", "max-model-len", "num-lcm-blocks"]
  .filter((name) => values[name] !== undefined)
  .flatMap((name) => [`--${name}`, text(name)]);

function residentMiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

/** Of the first card, all that runs on it, in MiB. */
function deviceMiB(): string {
  if (Bun.which("nvidia-smi") === null) return "-";
  const command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"];
  return Bun.spawnSync(command).stdout.toString().trim();
}

async function metrics(url: string): Promise<Map<string, number>> {
  const lines = (await (await fetch(`${url}/metrics`)).text()).split("\n");
  return new Map(
    lines.flatMap((line): [string, number][] => {
      const [, name, value] = /^(\w+) ([\d.e+-]+)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, Number(value)]];
    }),
  );
}

const vocabSize = Number(JSON.parse(readFileSync(files.configPath, "utf8")).vocab_size);
const maxTokens = Number(text("max-model-len"));
const random = new Random(1);
const sharedPrefixes = Array.from({ length: 12 }, (_, i) =>
  Int32Array.from({ length: Math.min(300 + 400 * i, maxTokens >> 2) }, () =>
    random.integer(0, vocabSize - 1),
  ),
);
const tally: Tally = {
  finished: 0,
  aborted: 0,
  refused: 0,
  promptTokens: 0,
  cachedTokens: 0,
  answerTokens: 0,
  failures: [],
  firstTokenMs: [],
};

async function report(pid: number, startedMs: number): Promise<void> {
  const gauges = await metrics(url);
  const gauge = (name: string) => gauges.get(`granary_${name}`) ?? Number.NaN;
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(0);
  console.log(
    `${seconds.padStart(4)} s  host ${residentMiB(pid).toFixed(0)} MiB  device ${deviceMiB()} MiB  ` +
      `${tally.finished} finished ${tally.aborted} aborted ${tally.refused} refused ` +
      `${tally.failures.length} failed  evictions ${gauge("cache_evictions_total")}  ` +
      `retractions ${gauge("retractions_total")}  empty ${gauge("cache_blocks_empty")} of ` +
      `${gauge("cache_blocks")}`,
  );
}

const { url, process: server, stop, hasEnded } = await startServer(files, text("port"), flags);
const startedMs = performance.now();
const endMs = startedMs + minutes * 60_000;
const isOver = () => performance.now() >= endMs || hasEnded();
const options = { url, vocabSize, sharedPrefixes, maxTokens };
const users = Array.from({ length: Number(text("streams")) }, (_, i) =>
  converse(options, new Random(100 + i), tally, isOver),
);
await report(server.pid, startedMs);
while (!isOver()) {
  await Bun.sleep(Math.min(reportEveryMs, endMs - performance.now()));
  await report(server.pid, startedMs);
}
await Promise.all(users);
await Bun.sleep(500);
const rest = await metrics(url);
await report(server.pid, startedMs);
const exitCode = await stop();
const ttft = (share: number) => Math.round(percentile(tally.firstTokenMs, share));
console.log(
  JSON.stringify({
    minutes,
    finished: tally.finished,
    aborted: tally.aborted,
    refused: tally.refused,
    failed: tally.failures.length,
    promptTokens: tally.promptTokens,
    cachedTokens: tally.cachedTokens,
    answerTokens: tally.answerTokens,
    firstTokenMs: { p50: ttft(0.5), p99: ttft(0.99) },
    liveAtTheEnd: rest.get("granary_requests_live"),
    activeBlocksAtTheEnd: rest.get("granary_cache_blocks_active"),
    exitCode,
  }),
);
for (const failure of tally.failures.slice(0, 10)) console.log(`failure: ${failure}`);
process.exit(tally.failures.length > 0 || exitCode !== 0 ? 1 : 0);
