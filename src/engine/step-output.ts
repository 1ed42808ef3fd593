/**
 * What one step's result means for its requests: chunks for their
 * readers, and the events that end those that are complete.
 */
import type { StepResult } from "../executor/model-executor";
import type { SchedulerEvent } from "../scheduler/events";
import type { ExecutionPlan, ForwardRow } from "../scheduler/plan";
import type { Choice } from "./choice";
import type { ChoiceTable } from "./choice-table";
import { absent, ChunkPacker } from "./chunk-codec";
import type { FinishReason, TokenChunk } from "./protocol";

const noTokens = new Int32Array();

/** One for an engine, step after step: a row without extras leaves integers and no object. */
export class StepOutput {
  /** Plain chunks of this step. */
  readonly packed = new ChunkPacker();
  /** Those with more than integers. */
  readonly chunks: TokenChunk[] = [];
  readonly events: SchedulerEvent[] = [];
  /** Requests whose prompt others can hit from now on. */
  readonly publishedRequests: number[] = [];
  promptTokens = 0;
  cachedTokens = 0;
  generationTokens = 0;
  nanAborts = 0;
  readonly #choices: ChoiceTable;

  constructor(choices: ChoiceTable) {
    this.#choices = choices;
  }

  /** Replaces what the step before left. */
  collect(plan: ExecutionPlan, result: StepResult): void {
    this.chunks.length = 0;
    this.events.length = 0;
    this.publishedRequests.length = 0;
    this.promptTokens = 0;
    this.cachedTokens = 0;
    this.generationTokens = 0;
    this.nanAborts = 0;
    const { rows } = plan.forward;
    let next = 0;
    for (let index = 0; index < rows.length; index++) {
      const row = rows[index] as ForwardRow;
      const count = result.tokenCounts[index] as number;
      const token = count > 0 ? (result.tokens[next] as number) : undefined;
      next += count;
      const choice = this.#choices.byHandle(row.request);
      if (choice !== undefined) this.#collectRow(row, choice, token, index, result);
    }
  }

  #collectRow(
    row: ForwardRow,
    choice: Choice,
    token: number | undefined,
    index: number,
    result: StepResult,
  ): void {
    const { request } = choice;
    const promptLogprobs = result.promptLogprobs.get(index);
    const isFirst = !choice.hasReported;
    if (row.isFirstDecode) this.publishedRequests.push(request.id);
    if (token === undefined && promptLogprobs === undefined && !isFirst) return;
    choice.hasReported = true;
    const cachedTokens = row.deviceHitTokens + row.hostHitTokens + row.storageHitTokens;
    if (isFirst) {
      this.promptTokens += request.tokens.length;
      this.cachedTokens += cachedTokens;
    }
    const end = token === undefined ? undefined : this.#take(choice, token);
    const kept = token !== undefined && token >= 0 && request.stop.maxTokens > 0 ? token : absent;
    const logprobs = kept === absent ? undefined : result.logprobs.get(index);
    const stopTokenId = end === "stop" && token !== undefined ? token : absent;
    if (logprobs === undefined && promptLogprobs === undefined && end !== "error") {
      this.packed.add(request.id, choice.index, kept, end, stopTokenId, isFirst ? cachedTokens : absent);
    } else {
      this.chunks.push({
        id: request.id,
        choice: choice.index,
        tokens: kept === absent ? noTokens : Int32Array.of(kept),
        ...(end === undefined ? {} : { finish: end }),
        ...(stopTokenId === absent ? {} : { stopTokenId }),
        ...(end === "error" ? { error: "the model produced no finite logits for this request" } : {}),
        ...(isFirst ? { cachedTokens } : {}),
        ...(logprobs === undefined ? {} : { logprobs }),
        ...(promptLogprobs === undefined ? {} : { promptLogprobs }),
      });
    }
    if (end !== undefined) this.#end(choice, end);
  }

  #take(choice: Choice, token: number): FinishReason | undefined {
    if (token < 0) {
      this.nanAborts++;
      return "error";
    }
    if (choice.request.stop.maxTokens === 0) return "length";
    this.generationTokens++;
    return choice.take(token);
  }

  #end(choice: Choice, reason: FinishReason): void {
    this.#choices.remove(choice);
    this.publishedRequests.push(choice.request.id);
    this.events.push(
      reason === "error"
        ? { kind: "abort", request: choice.handle }
        : { kind: "finish", request: choice.handle, keptTokens: choice.numGenerated },
    );
  }
}
