/** What a step's result means: chunks for readers, events for the scheduler, requests that others can hit. */
import { describe, expect, test } from "bun:test";
import { ChoiceTable } from "../../src/engine/choice-table";
import { unpackChunks } from "../../src/engine/chunk-codec";
import type { LogprobRows, TokenChunk } from "../../src/engine/protocol";
import { StepOutput } from "../../src/engine/step-output";
import type { StepResult } from "../../src/executor/model-executor";
import type { ForwardRow } from "../../src/scheduler/plan";
import { engineRequest, type RequestChanges } from "../support/engine-request";
import { decodeRow, planOf, prefillRow } from "../support/hand-made-plan";

const tokens = Int32Array.of(5, 6, 7);
const nothing = new Int32Array();

/** A table with these requests; request i has id 10 * i and handle i, counted from 1. */
function tableOf(...requests: readonly RequestChanges[]): ChoiceTable {
  const table = new ChoiceTable([2], () => 0);
  requests.forEach((changes, i) => {
    const [choice] = table.add(engineRequest({ id: 10 * (i + 1), ...changes }));
    if (choice !== undefined) table.bind(choice, i + 1);
  });
  return table;
}

/** The first row of a request's prompt, by its handle. */
const prompt = (request: number, more: Partial<ForwardRow> = {}) =>
  prefillRow({ slot: request, tokens, request, ...more });
const answer = (request: number, more: Partial<ForwardRow> = {}) =>
  decodeRow({ slot: request, begin: 3, tokens, request, ...more });

/** Collects a step in which row i yields `sampled[i]`, or nothing where that is undefined. */
function collect(
  table: ChoiceTable,
  rows: readonly ForwardRow[],
  sampled: readonly (number | undefined)[],
  more: Partial<StepResult> = {},
) {
  const plan = planOf(rows.map((row) => ({ row, changes: [] })));
  const result: StepResult = {
    planId: 1,
    tokenCounts: Int32Array.from(sampled, (token) => (token === undefined ? 0 : 1)),
    tokens: Int32Array.from(sampled.filter((token) => token !== undefined)),
    logprobs: new Map(),
    promptLogprobs: new Map(),
    ...more,
  };
  const output = new StepOutput(table);
  output.collect(plan, result);
  const chunks: TokenChunk[] = [];
  unpackChunks(output.packed.take(), (chunk) => chunks.push(chunk));
  const { events, publishedRequests, promptTokens, cachedTokens, generationTokens, nanAborts } = output;
  const counts = { promptTokens, cachedTokens, generationTokens, nanAborts };
  return { ...counts, events, publishedRequests, chunks: [...chunks, ...output.chunks] };
}

const logprobRows = (begin: number): LogprobRows => ({
  begin,
  numRows: 1,
  count: 0,
  ids: nothing,
  values: new Float32Array(),
  chosenValues: Float32Array.of(-1),
  chosenRanks: Int32Array.of(1),
});

describe("chunks", () => {
  test("carry each row's token to its own request, and cached tokens with the first", () => {
    const table = tableOf({}, {});
    const first = collect(
      table,
      [prompt(1, { deviceHitTokens: 64, hostHitTokens: 32 }), answer(2)],
      [40, 50],
    );
    expect(first.chunks).toEqual([
      { id: 10, choice: 0, tokens: Int32Array.of(40), cachedTokens: 96 },
      { id: 20, choice: 0, tokens: Int32Array.of(50), cachedTokens: 0 },
    ]);
    expect([first.promptTokens, first.cachedTokens, first.generationTokens]).toEqual([6, 96, 2]);
    const second = collect(table, [answer(1)], [41]);
    expect(second.chunks).toEqual([{ id: 10, choice: 0, tokens: Int32Array.of(41) }]);
    expect([second.promptTokens, second.generationTokens, second.events]).toEqual([0, 1, []]);
  });

  test("tell of a prompt's first part once, and of later parts without a token nothing", () => {
    const table = tableOf({});
    const part = { size: 1, completesPrompt: false };
    expect(collect(table, [prompt(1, part)], [undefined]).chunks).toEqual([
      { id: 10, choice: 0, tokens: nothing, cachedTokens: 0 },
    ]);
    expect(collect(table, [prompt(1, { ...part, begin: 1 })], [undefined]).chunks).toEqual([]);
  });

  test("carry log-probabilities of the token and of the prompt", () => {
    const table = tableOf({}, {});
    const [ofToken, ofPrompt] = [logprobRows(3), logprobRows(1)];
    const output = collect(table, [prompt(1), prompt(2)], [40, undefined], {
      logprobs: new Map([[0, ofToken]]),
      promptLogprobs: new Map([[1, ofPrompt]]),
    });
    expect(output.chunks.map(({ logprobs, promptLogprobs }) => [logprobs, promptLogprobs])).toEqual([
      [ofToken, undefined],
      [undefined, ofPrompt],
    ]);
  });

  test("are none for a request that is gone", () => {
    const table = tableOf({}, {});
    table.removeAll(10);
    const output = collect(table, [answer(1), answer(2)], [40, 50]);
    expect(output.chunks.map(({ id, tokens: sampled }) => [id, ...sampled])).toEqual([[20, 50]]);
    expect(output.events).toEqual([]);
  });
});

describe("an ending", () => {
  test("by an end token names it, and lets the scheduler keep all tokens", () => {
    const table = tableOf({});
    collect(table, [prompt(1)], [40]);
    const output = collect(table, [answer(1)], [2]);
    expect(output.chunks).toEqual([
      { id: 10, choice: 0, tokens: Int32Array.of(2), finish: "stop", stopTokenId: 2 },
    ]);
    expect(output.events).toEqual([{ kind: "finish", request: 1, keptTokens: 2 }]);
    expect(table.size).toBe(0);
  });

  test("by length names no token", () => {
    const table = tableOf({ stop: { maxTokens: 1 } });
    const output = collect(table, [prompt(1)], [40]);
    expect(output.chunks[0]).toEqual({
      id: 10,
      choice: 0,
      tokens: Int32Array.of(40),
      finish: "length",
      cachedTokens: 0,
    });
    expect(output.events).toEqual([{ kind: "finish", request: 1, keptTokens: 1 }]);
  });

  test("of a request for its prompt alone gives no token and counts none", () => {
    const table = tableOf({ stop: { maxTokens: 0 } });
    const output = collect(table, [prompt(1)], [40], { logprobs: new Map([[0, logprobRows(3)]]) });
    expect(output.chunks).toEqual([
      { id: 10, choice: 0, tokens: nothing, finish: "length", cachedTokens: 0 },
    ]);
    expect(output.events).toEqual([{ kind: "finish", request: 1, keptTokens: 0 }]);
    expect(output.generationTokens).toBe(0);
  });

  test("by logits that are no numbers is an error, and nothing of it is published", () => {
    const table = tableOf({});
    const output = collect(table, [prompt(1)], [-1]);
    expect(output.chunks).toEqual([
      {
        id: 10,
        choice: 0,
        tokens: nothing,
        finish: "error",
        error: "the model produced no finite logits for this request",
        cachedTokens: 0,
      },
    ]);
    expect(output.events).toEqual([{ kind: "abort", request: 1 }]);
    expect([output.nanAborts, output.generationTokens, table.size]).toEqual([1, 0, 0]);
  });
});

describe("a prompt can be hit by others", () => {
  test("from its first decode step on, or when it ends before one", () => {
    const table = tableOf({ numChoices: 2 }, { stop: { maxTokens: 1 } }, {});
    const begun = collect(table, [prompt(1), prompt(2), prompt(3)], [40, 41, 42]);
    expect(begun.publishedRequests).toEqual([20]);
    const further = collect(table, [answer(1, { isFirstDecode: true }), answer(3)], [43, 44]);
    expect(further.publishedRequests).toEqual([10]);
  });
});
