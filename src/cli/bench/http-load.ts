/**
 * `granary bench serve`: loads a running server over HTTP
 * with streaming completions and times what comes back.
 */
import type { FlagValues } from "../parse-flags";
import type { Runtime } from "../runtime";
import type { Measurement } from "./measurement";
import { summarise } from "./statistics";
import { type BenchRequest, makeWorkload, seededRandom } from "./workload";

interface Timed {
  readonly failure: string | undefined;
  readonly ttftMs: number;
  readonly itlMs: readonly number[];
  readonly e2eMs: number;
  readonly completionTokens: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly prompt_tokens_details?: { readonly cached_tokens: number };
}

interface Target {
  readonly url: string;
  readonly model: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly clockMs: () => number;
}

/** Data fields of an SSE body, one by one. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const event = text.slice(0, end);
      text = text.slice(end + 2);
      if (event.startsWith("data: ")) yield event.slice(6);
    }
  }
}

async function sendOne(target: Target, request: BenchRequest): Promise<Timed> {
  const startedMs = target.clockMs();
  const response = await fetch(`${target.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...target.headers },
    body: JSON.stringify({
      model: target.model,
      prompt: [...request.tokens],
      max_tokens: request.maxTokens,
      ignore_eos: true,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  const itlMs: number[] = [];
  let usage: Usage | undefined;
  let [ttftMs, lastMs] = [Number.NaN, startedMs];
  if (response.ok && response.body !== null) {
    for await (const data of events(response.body)) {
      if (data === "[DONE]") break;
      const parsed = JSON.parse(data) as { choices: readonly unknown[]; usage?: Usage | null };
      usage = parsed.usage ?? usage;
      if (parsed.choices.length === 0) continue;
      const nowMs = target.clockMs();
      if (Number.isNaN(ttftMs)) ttftMs = nowMs - startedMs;
      else itlMs.push(nowMs - lastMs);
      lastMs = nowMs;
    }
  }
  return {
    failure: usage === undefined ? `status ${response.status}, no usage` : undefined,
    ttftMs,
    itlMs,
    e2eMs: target.clockMs() - startedMs,
    completionTokens: usage?.completion_tokens ?? 0,
    promptTokens: usage?.prompt_tokens ?? 0,
    cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
  };
}

/** Keeps `concurrency` requests open, or fewer while arrivals are slower. */
async function sendAll(
  target: Target,
  requests: readonly BenchRequest[],
  concurrency: number,
  waitMs: () => number,
): Promise<readonly Timed[]> {
  const results: Timed[] = [];
  const startedMs = target.clockMs();
  let [next, arrivalMs] = [0, 0];
  const worker = async () => {
    for (let index = next++; index < requests.length; index = next++) {
      arrivalMs += waitMs();
      const delayMs = startedMs + arrivalMs - target.clockMs();
      if (delayMs > 0) await Bun.sleep(delayMs);
      results.push(await sendOne(target, requests[index] as BenchRequest));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return results;
}

export async function benchServe(flags: FlagValues, runtime: Runtime): Promise<Measurement> {
  const url = flags.required<string>("base-url").replace(/\/$/, "");
  const [key] = flags.list("api-key");
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const listing = await fetch(`${url}/v1/models`, { headers });
  const { data } = (await listing.json()) as { data: readonly { id: string; max_model_len?: number }[] };
  const model = data[0];
  if (model === undefined) throw new Error(`${url} serves no model`);
  const rate = flags.required<number>("request-rate");
  const random = seededRandom(flags.required<number>("workload-seed") + 1);
  // Byte-level vocabularies have 256 ids at least, so these ids exist everywhere.
  const requests = makeWorkload(flags, 256, model.max_model_len ?? 4096);
  const target = { url, model: model.id, headers, clockMs: runtime.clockMs };
  const startedMs = runtime.clockMs();
  const results = await sendAll(target, requests, flags.required("max-concurrency"), () =>
    rate === 0 ? 0 : (-Math.log(1 - random()) * 1000) / rate,
  );
  const seconds = (runtime.clockMs() - startedMs) / 1000;
  const done = results.filter(({ failure }) => failure === undefined);
  const total = (pick: (timed: Timed) => number) => done.reduce((sum, timed) => sum + pick(timed), 0);
  const tpotMs = done
    .filter(({ completionTokens }) => completionTokens > 1)
    .map(({ e2eMs, ttftMs, completionTokens }) => (e2eMs - ttftMs) / (completionTokens - 1));
  const figures = {
    model: model.id,
    requests: requests.length,
    failed: requests.length - done.length,
    elapsedSeconds: seconds,
    requestsPerSecond: done.length / seconds,
    generatedTokensPerSecond: total(({ completionTokens }) => completionTokens) / seconds,
    hitRate:
      total(({ cachedTokens }) => cachedTokens) /
      Math.max(
        1,
        total(({ promptTokens }) => promptTokens),
      ),
    ...summarise(
      "ttft",
      done.map(({ ttftMs }) => ttftMs),
    ),
    ...summarise(
      "itl",
      done.flatMap(({ itlMs }) => itlMs),
    ),
    ...summarise("tpot", tpotMs),
    ...summarise(
      "e2e",
      done.map(({ e2eMs }) => e2eMs),
    ),
  };
  return { figures, failures: results.flatMap(({ failure }) => failure ?? []) };
}
