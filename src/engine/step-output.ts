/**
 * What one step's result means for its requests: chunks for their
 * readers, and the events that end those that are complete.
 */
import type { StepResult } from "../executor/model-executor";
import type { SchedulerEvent } from "../scheduler/events";
import type { ExecutionPlan, ForwardRow } from "../scheduler/plan";
import type { Choice } from "./choice";
import type { ChoiceTable } from "./choice-table";
import type { FinishReason, TokenChunk } from "./protocol";

const noTokens = new Int32Array();

export class StepOutput {
  readonly chunks: TokenChunk[] = [];
  readonly events: SchedulerEvent[] = [];
  /** Requests whose prompt others can hit from now on. */
  readonly publishedRequests: number[] = [];
  promptTokens = 0;
  cachedTokens = 0;
  generationTokens = 0;
  nanAborts = 0;
  readonly #choices: ChoiceTable;
  readonly #plan: ExecutionPlan;
  readonly #result: StepResult;

  constructor(choices: ChoiceTable, plan: ExecutionPlan, result: StepResult) {
    this.#choices = choices;
    this.#plan = plan;
    this.#result = result;
  }

  collect(): void {
    let next = 0;
    this.#plan.forward.rows.forEach((row, index) => {
      const count = this.#result.tokenCounts[index] as number;
      const token = count > 0 ? (this.#result.tokens[next] as number) : undefined;
      next += count;
      const choice = this.#choices.byHandle(row.request);
      if (choice !== undefined) this.#collectRow(row, index, choice, token);
    });
  }

  #collectRow(row: ForwardRow, index: number, choice: Choice, token: number | undefined): void {
    const { request } = choice;
    const promptLogprobs = this.#result.promptLogprobs.get(index);
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
    const keeps = token !== undefined && token >= 0 && request.stop.maxTokens > 0;
    const logprobs = keeps ? this.#result.logprobs.get(index) : undefined;
    this.chunks.push({
      id: request.id,
      choice: choice.index,
      tokens: keeps ? Int32Array.of(token) : noTokens,
      ...(end === undefined ? {} : { finish: end }),
      ...(end === "stop" && token !== undefined ? { stopTokenId: token } : {}),
      ...(end === "error" ? { error: "the model produced no finite logits for this request" } : {}),
      ...(isFirst ? { cachedTokens } : {}),
      ...(logprobs === undefined ? {} : { logprobs }),
      ...(promptLogprobs === undefined ? {} : { promptLogprobs }),
    });
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
