/**
 * `granary bench serve`: loads a running server over HTTP
 * with streaming completions and times what comes back.
 */
import { GranaryError, messageOf } from "../../assert";
import type { FlagValues } from "../parse-flags";
import type { Runtime } from "../runtime";
import type { Measurement } from "./measurement";
import { fetchAnswer, parseChunk, parseModels, type ServedModel, type Usage } from "./server-answers";
import { eventData } from "./server-sent-events";
import { summarise } from "./statistics";
import { type BenchRequest, makeWorkload, seededRandom } from "./workload";

/** A request that was answered in full. */
interface Timed {
  readonly ttftMs: number;
  readonly itlMs: readonly number[];
  readonly e2eMs: number;
  readonly completionTokens: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

interface Answers {
  readonly done: readonly Timed[];
  readonly failures: readonly string[];
}

interface Target {
  readonly url: string;
  readonly model: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly clockMs: () => number;
}

function bodyOf(model: string, { tokens, maxTokens }: BenchRequest): string {
  return JSON.stringify({
    model,
    prompt: [...tokens],
    max_tokens: maxTokens,
    ignore_eos: true,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
  });
}

/** Throws when the server, the connection or the stream does not keep to the protocol. */
async function timeOne(target: Target, request: BenchRequest): Promise<Timed> {
  const startedMs = target.clockMs();
  const response = await fetchAnswer(`${target.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...target.headers },
    body: bodyOf(target.model, request),
  });
  const itlMs: number[] = [];
  let usage: Usage | undefined;
  let [ttftMs, lastMs] = [Number.NaN, startedMs];
  for await (const data of eventData(response.body ?? [])) {
    if (data === "[DONE]") break;
    const chunk = parseChunk(data);
    usage = chunk.usage ?? usage;
    if (chunk.choices.length === 0) continue;
    const nowMs = target.clockMs();
    if (Number.isNaN(ttftMs)) ttftMs = nowMs - startedMs;
    else itlMs.push(nowMs - lastMs);
    lastMs = nowMs;
  }
  if (usage === undefined) throw new GranaryError("bad_answer", "the stream ended without its usage");
  return {
    ttftMs,
    itlMs,
    e2eMs: target.clockMs() - startedMs,
    completionTokens: usage.completion_tokens,
    promptTokens: usage.prompt_tokens,
    cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? 0,
  };
}

/** Keeps `concurrency` requests open, or fewer while arrivals are slower. */
async function sendAll(
  target: Target,
  requests: readonly BenchRequest[],
  concurrency: number,
  waitMs: () => number,
): Promise<Answers> {
  const done: Timed[] = [];
  const failures: string[] = [];
  const startedMs = target.clockMs();
  let [next, arrivalMs] = [0, 0];
  const worker = async () => {
    for (let index = next++; index < requests.length; index = next++) {
      arrivalMs += waitMs();
      const delayMs = startedMs + arrivalMs - target.clockMs();
      if (delayMs > 0) await Bun.sleep(delayMs);
      // The server may be gone for one request and back for the next, so none of them ends the run.
      await timeOne(target, requests[index] as BenchRequest).then(
        (timed) => done.push(timed),
        (error) => failures.push(messageOf(error)),
      );
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, requests.length) }, worker));
  return { done, failures };
}

/** The model of that name, or the server's first. */
async function findModel(
  url: string,
  headers: Readonly<Record<string, string>>,
  name: string | undefined,
): Promise<ServedModel> {
  const listing = `${url}/v1/models`;
  const models = parseModels(await (await fetchAnswer(listing, { headers })).text(), listing);
  const model = name === undefined ? models[0] : models.find(({ id }) => id === name);
  if (model !== undefined) return model;
  const names = models.map(({ id }) => `'${id}'`).join(", ");
  throw new GranaryError("usage", `--model ${name} is not served by ${url}, which has ${names}`);
}

export async function benchServe(flags: FlagValues, runtime: Runtime): Promise<Measurement> {
  const url = flags.required<string>("base-url").replace(/\/$/, "");
  const [key] = flags.list("api-key");
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const model = await findModel(url, headers, flags.text("model"));
  const rate = flags.required<number>("request-rate");
  const random = seededRandom(flags.required<number>("workload-seed") + 1);
  // Byte-level vocabularies have 256 ids at least, so these ids exist everywhere.
  const { requests, numCut } = makeWorkload(flags, 256, model.max_model_len ?? 4096);
  const target = { url, model: model.id, headers, clockMs: runtime.clockMs };
  const startedMs = runtime.clockMs();
  const { done, failures } = await sendAll(target, requests, flags.required("max-concurrency"), () =>
    rate === 0 ? 0 : (-Math.log(1 - random()) * 1000) / rate,
  );
  const seconds = (runtime.clockMs() - startedMs) / 1000;
  const total = (pick: (timed: Timed) => number) => done.reduce((sum, timed) => sum + pick(timed), 0);
  const tpotMs = done
    .filter(({ completionTokens }) => completionTokens > 1)
    .map(({ e2eMs, ttftMs, completionTokens }) => (e2eMs - ttftMs) / (completionTokens - 1));
  const figures = {
    model: model.id,
    requests: requests.length,
    cutRequests: numCut,
    failed: failures.length,
    elapsedSeconds: seconds,
    promptTokens: total(({ promptTokens }) => promptTokens),
    generatedTokens: total(({ completionTokens }) => completionTokens),
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
  return { figures, failures };
}
