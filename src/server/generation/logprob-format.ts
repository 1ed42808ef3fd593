/**
 * The three shapes in which log-probabilities leave: of chat answers, of text completions, and of prompts.
 */
import type { LogprobRows } from "../../engine/protocol";
import type { TokenBytes } from "../../tokenizer/token-bytes";
import type { TokenLogprob } from "./logprob-values";
import { alternativeRanks, alternatives, chosenLogprob } from "./logprob-values";
import type { PromptLogprobs } from "./prompt-logprobs";

export interface LogprobFormat {
  readonly vocabulary: TokenBytes;
  /** Tokens are named `token_id:N`, which is exact where texts are not. */
  readonly tokensAsIds: boolean;
}

export interface ChatLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
}

export interface ChatTokenLogprobs extends ChatLogprob {
  readonly top_logprobs: readonly ChatLogprob[];
}

export interface CompletionLogprobs {
  readonly tokens: string[];
  readonly token_logprobs: (number | null)[];
  readonly top_logprobs: (Record<string, number> | null)[];
  readonly text_offset: number[];
}

export type PromptLogprobEntry = Record<
  string,
  { logprob: number; rank: number; decoded_token: string }
> | null;

/** One entry a token, for `choices[].logprobs.content`. */
export function chatLogprobs(
  format: LogprobFormat,
  tokens: ArrayLike<number>,
  rows: LogprobRows,
): ChatTokenLogprobs[] {
  return Array.from(tokens, (id, index) => ({
    ...chatLogprob(format, chosenLogprob(rows, index, id)),
    top_logprobs: alternatives(rows, index).map((entry) => chatLogprob(format, entry)),
  }));
}

function chatLogprob(format: LogprobFormat, { id, logprob }: TokenLogprob): ChatLogprob {
  return { token: tokenName(format, id), logprob, bytes: [...format.vocabulary.entry(id).bytes] };
}

export function emptyCompletionLogprobs(): CompletionLogprobs {
  return { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
}

/** Appends one token; `rows` undefined = nothing predicted it. Returns the offset behind it. */
export function appendCompletionLogprob(
  into: CompletionLogprobs,
  format: LogprobFormat,
  id: number,
  row: { readonly rows: LogprobRows; readonly index: number } | undefined,
  textOffset: number,
): number {
  into.tokens.push(tokenName(format, id));
  into.text_offset.push(textOffset);
  if (row === undefined) {
    into.token_logprobs.push(null);
    into.top_logprobs.push(null);
  } else {
    const chosen = chosenLogprob(row.rows, row.index, id);
    into.token_logprobs.push(chosen.logprob);
    into.top_logprobs.push(namedLogprobs(format, chosen, alternatives(row.rows, row.index)));
  }
  return textOffset + format.vocabulary.entry(id).text.length;
}

/** The chosen token comes along even when it is not among the most likely. */
function namedLogprobs(
  format: LogprobFormat,
  chosen: TokenLogprob,
  others: readonly TokenLogprob[],
): Record<string, number> {
  const named: Record<string, number> = Object.create(null);
  for (const entry of [...others, chosen]) named[tokenName(format, entry.id)] ??= entry.logprob;
  return named;
}

/** One entry a prompt position, keyed by token id; null for the first. */
export function promptLogprobEntries(
  format: LogprobFormat,
  prompt: Int32Array,
  logprobs: PromptLogprobs,
): PromptLogprobEntry[] {
  return Array.from(prompt, (id, position) => {
    const row = logprobs.at(position);
    if (row === undefined) return null;
    const { rows, index } = row;
    const entries: NonNullable<PromptLogprobEntry> = {};
    const add = ({ id: token, logprob }: TokenLogprob, rank: number) => {
      entries[token] ??= { logprob, rank, decoded_token: format.vocabulary.entry(token).text };
    };
    const ranks = alternativeRanks(rows, index);
    alternatives(rows, index).forEach((entry, place) => {
      add(entry, ranks[place]);
    });
    add(chosenLogprob(rows, index, id), rows.chosenRanks[index]);
    return entries;
  });
}

export function tokenName(format: LogprobFormat, id: number): string {
  return format.tokensAsIds ? `token_id:${id}` : format.vocabulary.entry(id).text;
}
