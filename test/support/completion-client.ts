/**
 * Completions over HTTP as parity tests read them: token ids and log-probabilities of the whole vocabulary.
 */
import { postJson } from "./server-process";

interface PromptLogprob {
  readonly logprob: number;
  readonly rank: number;
}

interface CompletionBody {
  readonly choices: readonly {
    readonly token_ids: readonly number[];
    readonly finish_reason: string;
    readonly prompt_logprobs?: readonly (Readonly<Record<string, PromptLogprob>> | null)[];
    readonly logprobs?: { readonly top_logprobs: readonly Readonly<Record<string, number>>[] } | null;
  }[];
  readonly usage: {
    readonly completion_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
}

export interface Completion {
  readonly tokens: readonly number[];
  readonly finishReason: string;
  readonly cachedTokens: number;
  /** [generated position][token id]; empty unless asked for. */
  readonly logprobs: readonly (readonly number[])[];
  /** [prompt position - 1][token id]; empty unless asked for. */
  readonly promptLogprobs: readonly (readonly number[])[];
}

export interface CompletionOptions {
  readonly maxTokens?: number;
  readonly wantsLogprobs?: boolean;
  readonly wantsPromptLogprobs?: boolean;
  /** Further fields of the body. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** Greedy completion of a prompt of token ids that runs to its limit. */
export async function complete(
  url: string,
  model: string,
  prompt: Int32Array,
  vocabSize: number,
  options: CompletionOptions = {},
): Promise<Completion> {
  const body = await postJson<CompletionBody>(`${url}/v1/completions`, {
    model,
    prompt: [...prompt],
    max_tokens: options.maxTokens ?? 24,
    temperature: 0,
    ignore_eos: true,
    return_token_ids: true,
    return_tokens_as_token_ids: true,
    ...(options.wantsLogprobs ? { logprobs: -1 } : {}),
    ...(options.wantsPromptLogprobs ? { prompt_logprobs: -1 } : {}),
    ...options.fields,
  });
  const choice = body.choices[0];
  if (choice === undefined) throw new Error("no choice came back");
  const ids = Array.from({ length: vocabSize }, (_, id) => id);
  return {
    tokens: choice.token_ids,
    finishReason: choice.finish_reason,
    cachedTokens: body.usage.prompt_tokens_details.cached_tokens,
    logprobs: (choice.logprobs?.top_logprobs ?? []).map((row) =>
      ids.map((id) => row[`token_id:${id}`] as number),
    ),
    promptLogprobs: (choice.prompt_logprobs ?? [])
      .slice(1)
      .map((row) => ids.map((id) => row?.[String(id)]?.logprob as number)),
  };
}
