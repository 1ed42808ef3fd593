/** Benchmarks that run an engine in this process, on a toy model. */
import { describe, expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { OfflineEngine } from "../../../src/cli/bench/offline-engine";
import { dispatch } from "../../../src/cli/dispatch";
import { parseCommand } from "../../../src/cli/parse-flags";
import { fakeRuntime } from "../../support/fake-runtime";
import { removeTemporaryDirectories } from "../../support/temporary-directory";

removeTemporaryDirectories();

const directory = join(import.meta.dir, "../../fixtures/reference/llama");
const engine = ["--model", directory, "--load-format", "dummy", "--device", "cpu", "--num-lcm-blocks", "40"];
const work = ["--max-num-seqs", "4", "--input-len", "130", "--output-len", "5"];

async function bench(...args: string[]) {
  const runtime = { ...fakeRuntime(), clockMs: () => performance.now() };
  const code = await dispatch(["bench", ...args], runtime);
  return { code, ...runtime.printed };
}

describe("bench", () => {
  test("of throughput counts every token once", async () => {
    const { code, out } = await bench("throughput", ...engine, ...work, "--num-prompts", "6", "--json");
    expect(code).toBe(0);
    const figures = JSON.parse(out);
    expect(figures).toMatchObject({
      requests: 6,
      failed: 0,
      promptTokens: 6 * 130,
      cachedTokens: 0,
      generatedTokens: 30,
    });
    expect(figures.generatedTokensPerSecond).toBeCloseTo(30 / figures.elapsedSeconds, 6);
  });

  test("of a shared prefix finds it in the cache", async () => {
    const shared = ["--shared-prefix-len", "128", "--num-prompts", "6", "--json"];
    const { out } = await bench("throughput", ...engine, ...work, ...shared);
    expect(JSON.parse(out).cachedTokens).toBeGreaterThan(0);
  });

  test("of latency times steps and batches", async () => {
    const { code, out } = await bench(
      "latency",
      ...engine,
      ...work,
      "--batch-size",
      "2",
      "--num-iterations",
      "2",
    );
    expect(code).toBe(0);
    expect(out).toMatch(/^batchSize +2$/m);
    expect(out).toMatch(/^decodeStepMedianMs +\d/m);
  });

  test("of latency counts the tokens that its steps gave, however few requests ran at once", async () => {
    const lone = ["--batch-size", "4", "--num-iterations", "1", "--max-num-seqs", "1", "--json"];
    const figures = JSON.parse((await bench("latency", ...engine, ...work, ...lone)).out);
    expect(figures).toMatchObject({ batchSize: 4, decodeBatchSize: 1 });
    expect(figures.decodeTokensPerSecond).toBeCloseTo(1000 / figures.decodeStepMeanMs, 6);
  });

  test("of anything else is refused with what there is", async () => {
    for (const words of [[], ["speed"], ["toString"]]) {
      const { code, err } = await bench(...words);
      expect([code, err]).toEqual([2, "granary: granary bench takes one of throughput, latency, serve\n"]);
    }
    const { code, err } = await bench("latency", "--no-overlap", "false");
    expect([code, err]).toEqual([2, "granary: unexpected argument 'false'\n"]);
  });

  test("of latency draws its prompts from the seed, others for each repetition", async () => {
    const run = spyOn(OfflineEngine.prototype, "run");
    const prompts = async (seed: string) => {
      run.mockClear();
      const few = ["--batch-size", "2", "--num-iterations", "2", "--workload-seed", seed];
      await bench("latency", ...engine, ...work, ...few);
      return run.mock.calls.flatMap(([requests]) => requests.map(({ tokens }) => tokens.join()));
    };
    try {
      const [first, again, other] = [await prompts("5"), await prompts("5"), await prompts("50")];
      expect(again).toEqual(first);
      expect(new Set([...first, ...other]).size).toBe(12);
    } finally {
      run.mockRestore();
    }
  });

  test("counts the requests that the context cut", async () => {
    const long = ["--input-len", "100000", "--json"];
    const few = ["--num-prompts", "3", "--batch-size", "2", "--num-iterations", "2"];
    for (const [kind, numCut] of [
      ["throughput", 3],
      ["latency", 4],
    ] as const) {
      const { out } = await bench(kind, ...engine, ...work, ...few, ...long);
      expect(JSON.parse(out).cutRequests).toBe(numCut);
    }
  });
});

describe("an engine for benches", () => {
  const { flags } = parseCommand("bench", engine, {});
  const request = (length: number, maxTokens = 3) => ({ tokens: new Int32Array(length).fill(7), maxTokens });

  test("counts a request that it refuses as failed, with its reason, and none of its tokens", () => {
    const bench = new OfflineEngine(flags, fakeRuntime());
    const run = bench.run([request(20), request(5_000), request(30), request(6_000)]);
    expect(run).toMatchObject({ promptTokens: 50, generatedTokens: 6 });
    expect(run.firstTokenMs).toHaveLength(2);
    expect(run.failures.map((reason) => /asks for (\d+) tokens/.exec(reason)?.[1])).toEqual(["5003", "6003"]);
  });

  test("times the steps in which requests went on, with what each gave", () => {
    const steps = (prompts: readonly number[], maxTokens: number, ...args: string[]) => {
      const { flags: own } = parseCommand("bench", [...engine, ...args], {});
      const run = new OfflineEngine(own, fakeRuntime()).run(
        prompts.map((length) => request(length, maxTokens)),
      );
      return run.decodeSteps.map(({ numTokens }) => numTokens);
    };
    expect(steps([20], 4)).toEqual([1, 1, 1]);
    expect(steps([20, 30, 40], 3)).toEqual([3, 3]);
    expect(steps([20, 30, 40], 3, "--max-num-seqs", "1")).toEqual([1, 1, 1, 1, 1, 1]);
    expect(steps([20, 30], 1)).toEqual([]);
  });

  test("counts a request that gave no token as failed", () => {
    const run = new OfflineEngine(flags, fakeRuntime()).run([request(20, 0), request(30)]);
    expect(run).toMatchObject({ promptTokens: 30, generatedTokens: 3, failures: ["it gave no token"] });
  });
});
