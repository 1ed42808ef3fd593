/**
 * The engine behind its thread: how soon commands are heard while a kernel blocks, and how the thread ends.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { EngineOptions } from "../../src/engine/engine-options";
import { EngineWorkerClient } from "../../src/engine/engine-worker-client";
import type { EngineRequest, TokenChunk } from "../../src/engine/protocol";
import { greedy } from "../support/engine-driver";
import { kernelMs } from "./slow-engine-worker";

function request(maxTokens: number): Omit<EngineRequest, "id"> {
  return {
    tokens: Int32Array.of(1, 2, 3),
    numChoices: 1,
    sampling: greedy,
    stop: { maxTokens, minTokens: 0, ignoreEos: true, stopTokenIds: [] },
  };
}

async function openSlowEngine(): Promise<EngineWorkerClient> {
  const client = new EngineWorkerClient(
    join(import.meta.dir, "slow-engine-worker.ts"),
    {} as EngineOptions,
    () => performance.now(),
  );
  await client.ready();
  return client;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}

describe("an engine in its thread", () => {
  test("hears of a new request within two steps while another one keeps it busy", async () => {
    const client = await openSlowEngine();
    const busy = client.submit(request(4000), () => {});
    await Bun.sleep(50);
    const latenciesMs: number[] = [];
    for (let i = 0; i < 21; i++) {
      // Arrivals at odd moments, so that every phase of a step is met.
      await Bun.sleep(3 + i * 0.37);
      const submittedMs = performance.now();
      const { promise, resolve } = Promise.withResolvers<void>();
      client.submit(request(1), () => resolve());
      await promise;
      latenciesMs.push(performance.now() - submittedMs);
    }
    busy.abort();
    // One step may have just begun; the next one carries the request and takes a kernel's time itself.
    expect(median(latenciesMs)).toBeLessThan(2 * kernelMs + 1);
    await client.drain();
  });

  test("delivers one chunk a step, in order, and ends by length", async () => {
    const client = await openSlowEngine();
    const chunks: TokenChunk[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    client.submit(request(5), (chunk) => {
      chunks.push(chunk);
      if (chunk.finish !== undefined) resolve();
    });
    await promise;
    expect(chunks.map(({ tokens }) => [...tokens])).toEqual([[7], [7], [7], [7], [7]]);
    expect(chunks.map(({ finish }) => finish)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      "length",
    ]);
    expect(client.numLiveRequests).toBe(0);
    await client.drain();
  });

  test("finishes what runs when it is drained, and takes nothing new", async () => {
    const client = await openSlowEngine();
    const finished = Promise.withResolvers<TokenChunk["finish"]>();
    client.submit(request(20), ({ finish }) => finish && finished.resolve(finish));
    const drained = client.drain();
    expect(() => client.submit(request(1), () => {})).toThrow("draining");
    expect(await finished.promise).toBe("length");
    await drained;
  });

  test("ends every open choice with an error when it is stopped, drained before or not", async () => {
    for (const isDrained of [false, true]) {
      const client = await openSlowEngine();
      const ends: (readonly [number, TokenChunk["finish"]])[] = [];
      const listener = ({ choice, finish }: TokenChunk) => finish && ends.push([choice, finish]);
      client.submit({ ...request(4000), numChoices: 2 }, listener);
      client.submit(request(4000), listener);
      const drained = isDrained ? client.drain() : undefined;
      await Bun.sleep(20);
      const stopped = client.stop();
      expect(ends).toEqual([
        [0, "error"],
        [1, "error"],
        [0, "error"],
      ]);
      await stopped;
      await drained;
      expect(client.numLiveRequests).toBe(0);
    }
  });

  test("tells a failed start in one sentence and stays failed", async () => {
    const client = new EngineWorkerClient(
      join(import.meta.dir, "../../src/engine/worker.ts"),
      { modelDirectory: "/nonexistent-model", endTokens: [] as readonly number[] } as EngineOptions,
      () => performance.now(),
    );
    await expect(client.ready()).rejects.toThrow("/nonexistent-model/config.json");
    expect(client.state).toBe("failed");
    expect(() => client.submit(request(1), () => {})).toThrow("failed");
  });
});
