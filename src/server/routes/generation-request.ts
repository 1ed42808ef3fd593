/** What chat and text completions have in common on the way from a body to a generation. */

import { namespaceRoot } from "../../cache/prefix/namespace-root";
import { maxChoicesPerPrompt, maxChoicesPerRequest } from "../../limits";
import type { ServerContext } from "../dependencies";
import type { GenerationRequest } from "../generation/generation";
import { checkAdmission } from "../http/admission";
import { ApiError, invalidParam } from "../http/api-error";
import { checkLogprobCount, checkLogprobVolume } from "../parameters/logprob-parameters";
import { inRange } from "../parameters/range";
import type { SamplingFields } from "../parameters/sampling-parameters";
import { readSampling } from "../parameters/sampling-parameters";
import type { StopFields } from "../parameters/stop-parameters";
import { readChoiceOptions, readStopTokenIds } from "../parameters/stop-parameters";

export interface GenerationFields extends SamplingFields, StopFields {
  readonly n?: number | null;
  readonly priority?: number | null;
  readonly cache_salt?: string | null;
  readonly stream?: boolean | null;
  readonly prompt_logprobs?: number | null;
}

/** Everything but the prompts and what follows from their length; checked before anything is tokenized. */
export type GenerationSettings = Omit<GenerationRequest, "prompts" | "maxTokens">;

export function readGenerationSettings(
  context: ServerContext,
  fields: GenerationFields,
  maxTokens: number,
  logprobs: number | undefined,
): GenerationSettings {
  const { vocabSize } = context.engine.limits;
  inRange("priority", fields.priority, -0x8000_0000, 0x7fff_ffff, 0);
  const promptLogprobs = checkLogprobCount(
    "prompt_logprobs",
    fields.prompt_logprobs,
    context.options.maxLogprobs,
    vocabSize,
  );
  if (promptLogprobs !== undefined && fields.stream === true) {
    throw invalidParam("prompt_logprobs", "prompt_logprobs are not available when stream is true.");
  }
  return {
    numChoices: inRange("n", fields.n, 1, maxChoicesPerPrompt, 1),
    sampling: readSampling(fields, vocabSize, context.options.samplingDefaults),
    stopTokenIds: readStopTokenIds(fields.stop_token_ids, vocabSize),
    ignoreEos: fields.ignore_eos ?? false,
    choice: readChoiceOptions(fields, maxTokens),
    logprobs,
    promptLogprobs,
    namespaceRoot: readNamespace(fields.cache_salt),
  };
}

/** The settings with their prompts, once it is known how much they ask for. */
export function completeRequest(
  context: ServerContext,
  settings: GenerationSettings,
  prompts: readonly Int32Array[],
  maxTokens: readonly number[],
  isStreamed: boolean,
): GenerationRequest {
  const { vocabSize } = context.engine.limits;
  for (const prompt of prompts) checkVocabulary(prompt, vocabSize);
  checkLogprobVolume({
    logprobs: isStreamed ? undefined : settings.logprobs,
    promptLogprobs: settings.promptLogprobs,
    promptTokens: prompts.reduce((sum, prompt) => sum + prompt.length, 0),
    generatedTokens: maxTokens.reduce((sum, count) => sum + count, 0) * settings.numChoices,
    vocabSize,
  });
  checkAdmission(context.engine);
  return { ...settings, prompts, maxTokens };
}

/** Some tokenizers know more tokens than their model has embeddings for; those mean nothing to it. */
function checkVocabulary(prompt: Int32Array, vocabSize: number): void {
  for (const id of prompt) {
    if (id < vocabSize) continue;
    throw new ApiError(
      400,
      `The tokenizer makes token ${id} of this prompt, but the model's vocabulary ends at ${vocabSize - 1}.`,
      { code: "token_out_of_vocabulary" },
    );
  }
}

export function checkNumChoices(numPrompts: number, numChoices: number): void {
  if (numPrompts * numChoices > maxChoicesPerRequest) {
    throw invalidParam("n", `Prompts times n may be at most ${maxChoicesPerRequest}.`);
  }
}

function readNamespace(salt: string | null | undefined): Uint8Array | undefined {
  if (salt === undefined || salt === null) return undefined;
  if (salt === "") throw invalidParam("cache_salt", "cache_salt may not be empty.");
  return namespaceRoot({ salt: salt.toWellFormed() });
}
