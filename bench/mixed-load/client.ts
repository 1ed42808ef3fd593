/** One user of the mixed load: conversations that share beginnings, with impatience and odd wishes. */
import { eventData } from "../../src/cli/bench/server-sent-events";
import type { Random } from "./random";

export interface ClientOptions {
  readonly url: string;
  readonly vocabSize: number;
  /** Beginnings that conversations share, as token ids. */
  readonly sharedPrefixes: readonly Int32Array[];
  /** Longest prompt and answer together. */
  readonly maxTokens: number;
}

/** What all users of a run have seen so far. */
export interface Tally {
  finished: number;
  aborted: number;
  refused: number;
  promptTokens: number;
  cachedTokens: number;
  answerTokens: number;
  readonly failures: string[];
  readonly firstTokenMs: number[];
}

interface Turn {
  readonly prompt: readonly number[];
  readonly maxTokens: number;
  readonly abortAfterMs: number | undefined;
  readonly extras: Readonly<Record<string, unknown>>;
}

interface Event {
  readonly choices: readonly {
    readonly token_ids?: readonly number[];
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly prompt_tokens_details?: { readonly cached_tokens: number };
  } | null;
  readonly error?: unknown;
}

const abortShare = 0.15;
const refusedShare = 0.02;

/** Token ids of a user's message or of made-up text. */
function madeUp(random: Random, length: number, vocabSize: number): number[] {
  return Array.from({ length }, () => random.integer(0, vocabSize - 1));
}

function extrasOf(random: Random): Readonly<Record<string, unknown>> {
  const draw = random.next();
  if (draw < 0.05) return { n: 2 };
  if (draw < 0.1) return { logprobs: 5 };
  if (draw < 0.2) return { top_k: 40, top_p: 0.95, min_p: 0.02, seed: random.integer(0, 1 << 30) };
  if (draw < 0.3) return { temperature: 0 };
  if (draw < 0.35) return { frequency_penalty: 0.5, presence_penalty: 0.2, repetition_penalty: 1.1 };
  return {};
}

/** Sends one turn; the answer's tokens, or undefined when it was broken off. */
async function send(
  options: ClientOptions,
  turn: Turn,
  tally: Tally,
): Promise<readonly number[] | undefined> {
  const controller = new AbortController();
  const timer =
    turn.abortAfterMs === undefined ? undefined : setTimeout(() => controller.abort(), turn.abortAfterMs);
  const startedMs = performance.now();
  try {
    const response = await fetch(`${options.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "bench",
        prompt: turn.prompt,
        max_tokens: turn.maxTokens,
        ignore_eos: true,
        stream: true,
        stream_options: { include_usage: true },
        return_token_ids: true,
        ...turn.extras,
      }),
      signal: controller.signal,
    });
    if (!response.ok) throw new Error(`status ${response.status}: ${(await response.text()).slice(0, 200)}`);
    return await readAnswer(response, startedMs, tally);
  } catch (error) {
    if (controller.signal.aborted) tally.aborted++;
    else tally.failures.push((error as Error).message);
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

async function readAnswer(response: Response, startedMs: number, tally: Tally): Promise<readonly number[]> {
  const answer: number[] = [];
  let [isComplete, isFirst] = [false, true];
  for await (const data of eventData(response.body ?? [])) {
    if (data === "[DONE]") break;
    const event = JSON.parse(data) as Event;
    if (event.error !== undefined) throw new Error(`error in the stream: ${data.slice(0, 200)}`);
    for (const choice of event.choices) {
      if (choice.finish_reason === "error") throw new Error("a choice ended with an error");
      answer.push(...(choice.token_ids ?? []));
    }
    if (isFirst) tally.firstTokenMs.push(performance.now() - startedMs);
    isFirst = false;
    if (!event.usage) continue;
    isComplete = true;
    tally.promptTokens += event.usage.prompt_tokens;
    tally.answerTokens += event.usage.completion_tokens;
    tally.cachedTokens += event.usage.prompt_tokens_details?.cached_tokens ?? 0;
  }
  if (!isComplete) throw new Error("the stream ended without its usage");
  tally.finished++;
  return answer;
}

/** A request that must be refused at once and leave no trace. */
async function sendNonsense(options: ClientOptions, random: Random, tally: Tally): Promise<void> {
  const prompt = madeUp(random, 20, options.vocabSize);
  const wrong = random.pick([
    { prompt: [...prompt, options.vocabSize] },
    { prompt, max_tokens: -1 },
    { prompt, temperature: 1e9 },
    { prompt: "" },
  ]);
  const response = await fetch(`${options.url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "bench", ...wrong }),
  });
  await response.text();
  if (response.status === 400) tally.refused++;
  else
    tally.failures.push(
      `nonsense was answered with ${response.status}: ${JSON.stringify(wrong).slice(0, 80)}`,
    );
}

/** Talks until `isOver`: conversation after conversation, turn after turn. */
export async function converse(
  options: ClientOptions,
  random: Random,
  tally: Tally,
  isOver: () => boolean,
): Promise<void> {
  while (!isOver()) {
    if (random.next() < refusedShare) await sendNonsense(options, random, tally);
    const history = [...random.pick(options.sharedPrefixes)];
    if (random.next() < 0.05) history.push(...madeUp(random, 24_000, options.vocabSize)); // a document
    const numTurns = random.integer(1, 8);
    for (let turn = 0; turn < numTurns && !isOver(); turn++) {
      history.push(...madeUp(random, random.pick([30, 200, 1000, 3000]), options.vocabSize));
      const maxTokens = random.pick([16, 64, 200, 500]);
      if (history.length + maxTokens > options.maxTokens) break;
      const isImpatient = random.next() < abortShare;
      const abortAfterMs = isImpatient ? random.next() * random.pick([50, 500, 5000]) : undefined;
      const answer = await send(
        options,
        { prompt: history, maxTokens, abortAfterMs, extras: extrasOf(random) },
        tally,
      );
      if (answer === undefined) break;
      history.push(...answer.slice(0, maxTokens));
    }
  }
}
