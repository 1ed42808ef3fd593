/** Runs a generation to its end for a client that waits for the whole answer. */
import type { LogprobRows } from "../../engine/protocol";
import type { ServerContext } from "../dependencies";
import type { ChoiceFinish, ChoiceUpdate } from "../generation/choice-assembler";
import type { GenerationRequest } from "../generation/generation";
import { Generation } from "../generation/generation";
import type { PromptLogprobs } from "../generation/prompt-logprobs";
import type { Usage } from "../generation/usage";
import { ApiError } from "../http/api-error";
import { RequestTimer } from "../metrics/request-timer";

export interface LogprobSegment {
  readonly tokens: Int32Array;
  readonly rows: LogprobRows;
}

export interface WholeChoice {
  text: string;
  readonly tokens: number[];
  readonly logprobs: LogprobSegment[];
  finish: ChoiceFinish | undefined;
}

export interface WholeAnswer {
  readonly choices: readonly WholeChoice[];
  readonly usage: Usage;
  /** One for each prompt; empty unless they were asked for. */
  readonly promptLogprobs: readonly PromptLogprobs[];
}

/**
 * Resolves when every choice has ended; rejects with an ApiError. Aborted when `signal` says that the client
 * is gone.
 */
export function runToEnd(
  context: ServerContext,
  request: GenerationRequest,
  signal: AbortSignal,
  onUpdate: (index: number, update: ChoiceUpdate) => void,
): Promise<Generation> {
  const { promise, resolve, reject } = Promise.withResolvers<Generation>();
  const generation = new Generation(context, request, new RequestTimer(context.metrics, context.clock), {
    onUpdate,
    onEnd: () => {
      signal.removeEventListener("abort", onAbort);
      resolve(generation);
    },
    onError: (error) => {
      signal.removeEventListener("abort", onAbort);
      reject(error);
    },
  });
  const onAbort = () => {
    generation.abort();
    reject(clientGone());
  };
  if (signal.aborted) {
    reject(clientGone());
    return promise;
  }
  signal.addEventListener("abort", onAbort, { once: true });
  generation.start();
  return promise;
}

/** The finished choices, gathered. */
export async function runWhole(
  context: ServerContext,
  request: GenerationRequest,
  signal: AbortSignal,
): Promise<WholeAnswer> {
  const choices: WholeChoice[] = Array.from({ length: request.prompts.length * request.numChoices }, () => ({
    text: "",
    tokens: [],
    logprobs: [],
    finish: undefined,
  }));
  const { usage, promptLogprobs } = await runToEnd(context, request, signal, (index, update) =>
    appendUpdate(choices[index], update),
  );
  return { choices, usage, promptLogprobs };
}

function appendUpdate(choice: WholeChoice, update: ChoiceUpdate): void {
  choice.text += update.text;
  for (const token of update.tokens) choice.tokens.push(token);
  if (update.logprobs !== undefined && update.tokens.length > 0) {
    choice.logprobs.push({ tokens: update.tokens, rows: update.logprobs });
  }
  if (update.finish !== undefined) choice.finish = update.finish;
}

/** Nobody reads it; it is for the log. */
function clientGone(): ApiError {
  return new ApiError(499, "The client closed the connection.", { code: "client_closed_request" });
}
