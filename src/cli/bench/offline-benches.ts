/** `granary bench throughput` and `latency`: what an engine does in this process, without HTTP. */
import type { FlagValues } from "../parse-flags";
import type { Runtime } from "../runtime";
import type { Measurement } from "./measurement";
import { type DecodeStep, OfflineEngine } from "./offline-engine";
import { summarise } from "./statistics";
import { makeWorkload } from "./workload";

/** All requests at once; the rate at which they are worked off. */
export function benchThroughput(flags: FlagValues, runtime: Runtime): Measurement {
  const bench = new OfflineEngine(flags, runtime);
  const { vocabSize, maxModelLen } = bench.engine.limits;
  const { requests, numCut } = makeWorkload(flags, vocabSize, maxModelLen);
  // One request first, so that lazily built things are not timed.
  bench.run(requests.slice(0, 1).map(({ maxTokens }) => ({ tokens: Int32Array.of(1), maxTokens })));
  const result = bench.run(requests);
  const seconds = result.elapsedMs / 1000;
  const figures = {
    requests: requests.length,
    cutRequests: numCut,
    failed: result.failures.length,
    elapsedSeconds: seconds,
    promptTokens: result.promptTokens,
    cachedTokens: result.cachedTokens,
    generatedTokens: result.generatedTokens,
    generatedTokensPerSecond: result.generatedTokens / seconds,
    totalTokensPerSecond: (result.promptTokens + result.generatedTokens) / seconds,
    ...summarise("firstToken", result.firstTokenMs),
  };
  return { figures, failures: result.failures };
}

/** One batch of equal requests, again and again; the time of a decode step and of a whole batch. */
export function benchLatency(flags: FlagValues, runtime: Runtime): Measurement {
  const bench = new OfflineEngine(flags, runtime);
  const { vocabSize, maxModelLen } = bench.engine.limits;
  const batchSize = flags.required<number>("batch-size");
  const seed = flags.required<number>("workload-seed");
  const iterations = flags.required<number>("num-iterations");
  const decodeSteps: DecodeStep[] = [];
  const batchMs: number[] = [];
  const firstTokenMs: number[] = [];
  const failures: string[] = [];
  let cutRequests = 0;
  for (let iteration = 0; iteration <= iterations; iteration++) {
    const { requests, numCut } = makeWorkload(
      flags.with({ "num-prompts": batchSize, "workload-seed": seed + iteration }),
      vocabSize,
      maxModelLen,
    );
    const result = bench.run(requests);
    if (iteration === 0) continue;
    failures.push(...result.failures);
    cutRequests += numCut;
    // Of a batch that came to nothing, only the reasons are worth keeping.
    if (result.generatedTokens === 0) continue;
    batchMs.push(result.elapsedMs);
    firstTokenMs.push(Math.max(...result.firstTokenMs));
    decodeSteps.push(...result.decodeSteps);
  }
  const total = (pick: (step: DecodeStep) => number) => decodeSteps.reduce((sum, it) => sum + pick(it), 0);
  // Steps of which some requests are not yet part, or no longer, say nothing of the batch.
  const mostTokens = decodeSteps.reduce((most, { numTokens }) => Math.max(most, numTokens), 0);
  const fullSteps = decodeSteps.filter(({ numTokens }) => numTokens === mostTokens);
  const figures = {
    batchSize,
    iterations,
    cutRequests,
    failed: failures.length,
    ...summarise("batch", batchMs),
    ...summarise("lastFirstToken", firstTokenMs),
    decodeBatchSize: mostTokens,
    ...summarise(
      "decodeStep",
      fullSteps.map(({ durationMs }) => durationMs),
    ),
    decodeTokensPerSecond:
      (1000 * total(({ numTokens }) => numTokens)) / total(({ durationMs }) => durationMs),
  };
  return { figures, failures };
}
