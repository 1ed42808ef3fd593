/** An engine for tests: it says what a script tells it, token by token, as late as it is told, or fails. */
import type { EngineClient, EngineState, RequestTicket } from "../../src/engine/engine-client";
import type {
  EngineGauges,
  EngineLimits,
  EngineRequest,
  FinishReason,
  LogprobRows,
  TokenChunk,
} from "../../src/engine/protocol";

export interface FakeScript {
  /** Generated tokens; the default repeats the prompt's tokens. Choice c is given the tokens rotated by c. */
  readonly tokens?: (request: FakeRequest, choice: number) => readonly number[];
  /** Before the first token and between two, in milliseconds. */
  readonly firstDelayMs?: number;
  readonly tokenDelayMs?: number;
  /** Tokens of one chunk. */
  readonly tokensPerChunk?: number;
  /** Fails the request instead of giving token number `atToken`. */
  readonly failure?: { readonly atToken: number; readonly message: string };
  readonly cachedTokens?: number;
  /** Log-probability of token `id` at a generated or prompt position; default: a fixed function of both. */
  readonly logprob?: (position: number, id: number) => number;
}

export type FakeRequest = Omit<EngineRequest, "id">;

export interface FakeEvent {
  readonly kind: "submit" | "finish" | "abort";
  readonly id: number;
  readonly choice?: number;
  readonly keptTokens?: number;
}

export const fakeLimits: EngineLimits = {
  vocabSize: 320,
  maxModelLen: 512,
  prefixGranularity: 16,
  numLcmBlocks: 64,
  maxNumSeqs: 16,
};

export class FakeEngine implements EngineClient {
  state: EngineState = "ready";
  limits: EngineLimits;
  gauges: EngineGauges | undefined;
  failure: string | undefined;
  ageMs = 0;
  script: FakeScript;
  readonly endTokens: ReadonlySet<number>;
  readonly requests: FakeRequest[] = [];
  readonly events: FakeEvent[] = [];
  readonly #live = new Map<number, FakeRun>();
  #nextId = 1;

  constructor(
    script: FakeScript = {},
    limits: Partial<EngineLimits> = {},
    endTokens: readonly number[] = [257],
  ) {
    this.script = script;
    this.limits = { ...fakeLimits, ...limits };
    this.endTokens = new Set(endTokens);
  }

  get numLiveRequests(): number {
    return this.#live.size;
  }

  progressAgeMs(): number {
    return this.ageMs;
  }

  submit(request: FakeRequest, onChunk: (chunk: TokenChunk) => void): RequestTicket {
    const id = this.#nextId++;
    this.requests.push(request);
    this.events.push({ kind: "submit", id });
    const run = new FakeRun(this, id, request, onChunk, () => this.#live.delete(id));
    this.#live.set(id, run);
    run.start();
    return {
      id,
      finish: (choice, keptTokens) => {
        this.events.push({ kind: "finish", id, choice, keptTokens });
        run.endChoice(choice);
      },
      abort: () => {
        if (!this.#live.has(id)) return;
        this.events.push({ kind: "abort", id });
        run.stop();
      },
    };
  }

  async flush(): Promise<boolean> {
    return this.#live.size === 0;
  }

  async drain(): Promise<void> {
    this.state = "draining";
    while (this.#live.size > 0) await Bun.sleep(5);
  }
}

/** One submitted request: its choices take turns, a chunk each. */
class FakeRun {
  readonly #engine: FakeEngine;
  readonly #id: number;
  readonly #request: FakeRequest;
  readonly #onChunk: (chunk: TokenChunk) => void;
  readonly #onEnd: () => void;
  readonly #open: Set<number>;
  readonly #sent: number[];
  #timer: Timer | undefined;

  constructor(
    engine: FakeEngine,
    id: number,
    request: FakeRequest,
    onChunk: (chunk: TokenChunk) => void,
    onEnd: () => void,
  ) {
    this.#engine = engine;
    this.#id = id;
    this.#request = request;
    this.#onChunk = onChunk;
    this.#onEnd = onEnd;
    this.#open = new Set(Array.from({ length: request.numChoices }, (_, choice) => choice));
    this.#sent = Array.from({ length: request.numChoices }, () => 0);
  }

  start(): void {
    this.#timer = setTimeout(() => this.#step(), this.#engine.script.firstDelayMs ?? 0);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#open.clear();
    this.#onEnd();
  }

  endChoice(choice: number): void {
    this.#open.delete(choice);
    if (this.#open.size === 0) this.stop();
  }

  #step(): void {
    for (const choice of [...this.#open]) if (this.#open.has(choice)) this.#send(choice);
    if (this.#open.size > 0)
      this.#timer = setTimeout(() => this.#step(), this.#engine.script.tokenDelayMs ?? 0);
  }

  #send(choice: number): void {
    const { script, endTokens } = this.#engine;
    const { stop, tokens: prompt, logprobs, promptLogprobs } = this.#request;
    const all = script.tokens?.(this.#request, choice) ?? rotated(prompt, choice);
    const begin = this.#sent[choice];
    const tokens: number[] = [];
    let finish: FinishReason | undefined = stop.maxTokens === 0 ? "length" : undefined;
    let stopTokenId: number | undefined;
    while (finish === undefined && tokens.length < (script.tokensPerChunk ?? 1)) {
      const position = begin + tokens.length;
      if (script.failure?.atToken === position) {
        this.#fail(choice, script.failure.message);
        return;
      }
      const token = all[position % all.length];
      tokens.push(token);
      const isEnd = (!stop.ignoreEos && endTokens.has(token)) || stop.stopTokenIds.includes(token);
      if (isEnd && position >= stop.minTokens) {
        finish = "stop";
        stopTokenId = token;
      } else if (position + 1 === stop.maxTokens) finish = "length";
    }
    this.#sent[choice] += tokens.length;
    if (finish !== undefined) this.#open.delete(choice);
    const isFirst = begin === 0;
    this.#onChunk({
      id: this.#id,
      choice,
      tokens: Int32Array.from(tokens),
      ...(finish === undefined ? {} : { finish }),
      ...(stopTokenId === undefined ? {} : { stopTokenId }),
      ...(isFirst ? { cachedTokens: promptLogprobs === undefined ? (script.cachedTokens ?? 0) : 0 } : {}),
      ...(logprobs === undefined ? {} : { logprobs: this.#rows(prompt.length + begin, tokens, logprobs) }),
      ...(promptLogprobs === undefined || !isFirst || choice !== 0
        ? {}
        : { promptLogprobs: this.#rows(1, prompt.subarray(1), promptLogprobs) }),
    });
    if (this.#open.size === 0) this.#onEnd();
  }

  #fail(choice: number, error: string): void {
    this.stop();
    this.#onChunk({ id: this.#id, choice, tokens: new Int32Array(0), finish: "error", error });
  }

  #rows(begin: number, tokens: ArrayLike<number>, wanted: number): LogprobRows {
    const { vocabSize } = this.#engine.limits;
    const logprob = this.#engine.script.logprob ?? fakeLogprob;
    const isWhole = wanted === -1;
    const count = isWhole ? vocabSize : wanted;
    const rows = Array.from(tokens, (token, index) => {
      const position = begin + index;
      const values = Float32Array.from({ length: vocabSize }, (_, id) => logprob(position, id));
      const order = Int32Array.from(values.keys()).sort((a, b) => values[b] - values[a] || a - b);
      return { values, order, chosen: values[token], rank: order.indexOf(token) + 1 };
    });
    return {
      begin,
      numRows: rows.length,
      count,
      ids: isWhole
        ? new Int32Array(0)
        : Int32Array.from(rows.flatMap(({ order }) => [...order.subarray(0, count)])),
      values: Float32Array.from(
        rows.flatMap(({ values, order }) =>
          isWhole ? [...values] : [...order.subarray(0, count)].map((id) => values[id]),
        ),
      ),
      chosenValues: Float32Array.from(rows, ({ chosen }) => chosen),
      chosenRanks: Int32Array.from(rows, ({ rank }) => rank),
    };
  }
}

/** Different at every position and for every token. */
export function fakeLogprob(position: number, id: number): number {
  return -0.01 - (((id * 7 + position * 13) % 320) + id / 1000) / 32;
}

function rotated(tokens: Int32Array, by: number): number[] {
  const at = by % tokens.length;
  return [...tokens.subarray(at), ...tokens.subarray(0, at)];
}
