/** Benchmarks that run an engine in this process, on a toy model. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { dispatch } from "../../../src/cli/dispatch";
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

  test("of anything else is refused with what there is", async () => {
    for (const words of [[], ["speed"], ["toString"], ["latency", "more"]]) {
      const { code, err } = await bench(...words);
      expect([code, err]).toEqual([2, "granary: granary bench takes one of throughput, latency, serve\n"]);
    }
  });
});
