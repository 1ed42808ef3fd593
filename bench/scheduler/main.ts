/**
 * Measures the scheduler on the workloads and compares with the targets:
 * `scripts/bench-scheduler [--json] [--runs n] [--only w1,w2,...] [--minutes m]`.
 */
import { IdleMemory } from "../../src/engine/idle-memory";
import { runAdmission } from "./admission";
import {
  activeSet,
  type ChatRun,
  runChat,
  turnMajor,
  w1Config,
  w1HostConfig,
  w2Config,
  w3Config,
} from "./chat";
import { runLong } from "./long-run";
import { memoryControlUs, middle, pageHashNs, spinControl, summarize, timerOverheadUs } from "./measure";
import { formatRow, type RowResult, type RowSpec, rowSpecs } from "./rows";
import { runDeepQueue, runLongContext, runMemory, runScale } from "./scale";
import { conversationTokens, fnv1a32 } from "./tokens";

const untimedRuns = 2;
/**
 * Runs of a workload that is over in a few ms, until compilers are done with the code that it alone reaches:
 * a server gets there in its first second.
 */
const untimedShortRuns = 24;
const peerPageHashNs = 280;

const args = process.argv.slice(2);
const option = (name: string, fallback: string) => {
  const at = args.indexOf(`--${name}`);
  return at < 0 ? fallback : (args[at + 1] ?? fallback);
};
const asJson = args.includes("--json");
const runs = Number(option("runs", "9"));
const only = option("only", "w1,adm,w2,w3,w4,w5,w6").split(",");

if (fnv1a32(conversationTokens(0, 1280)) !== 3498471582) throw new Error("the token generator is wrong");
const timerUs = timerOverheadUs();
const hashNs = pageHashNs();
/** Figures are stated for a machine whose page hash takes as long as the peers'. */
const scale = peerPageHashNs / hashNs;
const results: RowResult[] = [];

/** Puts the process's memory in order, as the engine's thread does when it is idle. */
function settleMemory(): void {
  const memory = new IdleMemory();
  while (!memory.slice());
}

/** Calls `run` a few times untimed and then `runs` times. */
function repeat<T>(run: () => T, times = runs, untimed = untimedRuns): T[] {
  for (let i = 0; i < untimed; i++) run();
  settleMemory();
  return Array.from({ length: times }, run);
}

/** `medianUs` is given with the slowest percent of something, for a control that takes as long. */
function report(
  { row, target, unit = "us", isTail }: RowSpec,
  values: readonly number[],
  medianUs?: number,
): void {
  const value = unit === "us" || unit === "ms" ? middle(values) * scale : middle(values);
  const spin = isTail === true ? { spinGaps: spinControl(500).over1ms } : {};
  const control = medianUs === undefined ? {} : { controlUs: memoryControlUs(medianUs) };
  const result: RowResult = { row, value, target, unit, ...spin, ...control };
  results.push(result);
  if (!asJson) console.log(formatRow(result));
}

function expectEqual(what: string, value: number, expected: number, tolerance = 0): void {
  if (Math.abs(value - expected) > expected * tolerance)
    throw new Error(`${what}: ${value} instead of ${expected}`);
}

function chat(): void {
  for (const batch of [1, 32, 256]) {
    const timed = repeat(() => runChat(w1Config(), turnMajor(batch), timerUs));
    for (const run of timed) {
      expectEqual("W1 hit tokens", run.hitTokens, 4_276_224);
      expectEqual("W1 cached blocks", run.cachedBlocks, 10_000);
      expectEqual("W1 evictions", run.evictions, 0);
    }
    const [median, mean, p99] = rowSpecs.w1(batch);
    const decode = timed.map((run) => summarize(run.decodeUs));
    report(
      median,
      decode.map((summary) => summary.median),
    );
    report(
      mean,
      decode.map((summary) => summary.mean),
    );
    report(
      p99,
      decode.map((summary) => summary.p99),
      middle(decode.map((summary) => summary.median)),
    );
    if (batch === 32) {
      report(
        { row: "W1 B=32 prefill, a row", target: 30 },
        timed.map((run) => summarize(run.prefillRowUs).median),
      );
    }
    report(
      { row: `W1 B=${batch} whole run`, target: 160, unit: "ms" },
      timed.map((run) => run.totalUs / 1000),
    );
  }
}

/** W1 with a Host tier: the step that publishes a batch also starts its copies, and must not stand out. */
function host(): void {
  for (const batch of [32, 256]) {
    const timed = repeat(() => runChat(w1HostConfig(), turnMajor(batch), timerUs));
    for (const run of timed) {
      expectEqual("W1 with Host hit tokens", run.hitTokens, 4_276_224);
      expectEqual("W1 with Host blocks on Host", run.hostCachedBlocks, 10_000);
    }
    const decode = timed.map((run) => summarize(run.decodeUs));
    const [median, , p99] = rowSpecs.w1(batch);
    report(
      { ...median, row: `W1 B=${batch} with Host, median` },
      decode.map((summary) => summary.median),
    );
    report(
      { ...p99, row: `W1 B=${batch} with Host, p99` },
      decode.map((summary) => summary.p99),
      middle(decode.map((summary) => summary.median)),
    );
  }
}

function admission(): void {
  for (const [tokens, withHashing, given] of [
    [1024, 14, 3],
    [8192, 65, 10],
    [65_536, 400, 60],
  ]) {
    const timed = repeat(() => runAdmission(tokens, 12_288, timerUs));
    report(
      { row: `hit admission of ${tokens}, hashing included`, target: withHashing },
      timed.map((run) => run.withHashingUs),
    );
    report(
      { row: `hit admission of ${tokens}, hashes given`, target: given },
      timed.map((run) => run.hashesGivenUs),
    );
  }
}

function pressure(): void {
  for (const [name, order, hits, evictions] of [
    ["W2a", turnMajor(1), 2_191_488, 40_011],
    ["W2b", activeSet(), 4_255_936, 7_754],
  ] as const) {
    const timed = repeat(() => runChat(w2Config(), order, timerUs));
    for (const run of timed) {
      expectEqual(`${name} evictions`, run.evictions, evictions, 0.01);
      if (run.hitTokens < hits) throw new Error(`${name} hit tokens: ${run.hitTokens} below ${hits}`);
    }
    const admissions = timed.map((run) => summarize(run.admissionUs));
    report(
      { row: `${name} admission, median`, target: 35 },
      admissions.map((summary) => summary.median),
    );
    report(
      { row: `${name} admission, p99`, target: 120, isTail: true },
      admissions.map((summary) => summary.p99),
      middle(admissions.map((summary) => summary.median)),
    );
  }
}

function hybrid(): void {
  for (const batch of [1, 32, 256]) {
    const timed = repeat((): ChatRun => runChat(w3Config(), turnMajor(batch), timerUs));
    for (const run of timed) expectEqual("W3 hit tokens", run.hitTokens, 4_276_224);
    const [median, mean] = rowSpecs.w3(batch);
    report(
      median,
      timed.map((run) => summarize(run.decodeUs).median),
    );
    report(
      mean,
      timed.map((run) => summarize(run.decodeUs).mean),
    );
  }
}

function scaling(): void {
  let atTenThousand = 0;
  for (const blocks of [1000, 10_000, 100_000, 1_000_000]) {
    const isShort = blocks === 1000;
    const untimed = isShort ? untimedShortRuns : untimedRuns;
    const timed = repeat(() => runScale(blocks, isShort ? 40 : 50, timerUs), runs, untimed);
    const evicting = timed.map((run) => run.evictingAdmissionUs);
    if (blocks === 10_000) atTenThousand = middle(evicting) * scale;
    const target = blocks === 1_000_000 ? Math.min(40, 2.5 * atTenThousand) : 40;
    report({ row: `W4 ${blocks} blocks, evicting admission`, target }, evicting);
    report(
      { row: `W4 ${blocks} blocks, decode round, mean`, target: 15, isTail: true },
      timed.map((run) => run.decodeRoundMeanUs),
    );
    report(
      { row: `W4 ${blocks} blocks, first decode round`, target: 300, isTail: true },
      timed.map((run) => run.firstDecodeRoundUs),
    );
    report(
      { row: `W4 ${blocks} blocks, hit admission`, target: 20 },
      timed.map((run) => run.hitAdmissionUs),
    );
  }
}

function longContext(): void {
  for (const tokens of [1024, 8192, 65_536]) {
    report(
      { row: `W5 decode round at ${tokens}`, target: 10 },
      repeat(() => runLongContext(tokens, timerUs)),
    );
  }
}

function deepQueue(): void {
  for (const waiting of [1000, 10_000]) {
    const timed = repeat(() => runDeepQueue(waiting, timerUs));
    report(
      { row: `W6 ${waiting} waiting, round, median`, target: 60 },
      timed.map((run) => run.medianUs),
    );
    report(
      { row: `W6 ${waiting} waiting, first round`, target: 5000, isTail: true },
      timed.map((run) => run.firstUs),
    );
    report(
      { row: `W6 ${waiting} waiting, longest round`, target: 5000, isTail: true },
      timed.map((run) => run.maxUs),
    );
  }
}

function memory(): void {
  const groups = only.includes("memory3") ? 3 : 1;
  const { bytesPerBlock, cachedBlocks } = runMemory(1_000_000, groups);
  expectEqual("cached blocks", cachedBlocks, 1_000_000, 0.01);
  report(
    {
      row: `process memory a cached block, ${groups} group(s)`,
      target: groups === 1 ? 256 : 400,
      unit: "bytes",
    },
    [bytesPerBlock],
  );
}

function longRun(): void {
  const minutes = Number(option("minutes", "10"));
  const run = runLong(minutes, timerUs, settleMemory);
  report({ row: `W2b for ${minutes} min, step p99.9`, target: 60, isTail: true }, [run.p999]);
  report({ row: `W2b for ${minutes} min, step p99.99`, target: 300, isTail: true }, [run.p9999]);
  if (!asJson)
    console.log(`  ${run.steps} steps, ${run.over1ms} over 1 ms, longest ${run.max.toFixed(0)} us`);
  if (!asJson) console.log(`  resident MiB by minute: ${run.residentMiB.join(" ")}`);
  if (!asJson) console.log(`  spin control of 20 s: ${JSON.stringify(run.spin)}`);
}

const parts: Record<string, () => void> = {
  w1: chat,
  host,
  adm: admission,
  w2: pressure,
  w3: hybrid,
  w4: scaling,
  w5: longContext,
  w6: deepQueue,
  memory,
  memory3: memory,
  long: longRun,
};

if (!asJson)
  console.log(`page hash ${hashNs.toFixed(0)} ns: times are scaled by ${scale.toFixed(3)}; ${runs} runs`);
for (const part of only) parts[part]?.();
if (asJson) console.log(JSON.stringify({ hashNs, runs, results }));
