/** When a generation ends: reads and checks the fields about stops and lengths. */
import { maxStopStringLength, maxStopStrings, maxStopTokenIds } from "../../limits";
import type { ChoiceOptions } from "../generation/choice-assembler";
import { invalidParam } from "../http/api-error";
import { inRange } from "./range";

type Maybe<T> = T | null | undefined;

export interface StopFields {
  readonly stop?: Maybe<string | readonly string[]>;
  readonly stop_token_ids?: Maybe<readonly number[]>;
  readonly min_tokens?: Maybe<number>;
  readonly ignore_eos?: Maybe<boolean>;
  readonly skip_special_tokens?: Maybe<boolean>;
  readonly include_stop_str_in_output?: Maybe<boolean>;
}

export function readChoiceOptions(fields: StopFields, maxTokens: number): ChoiceOptions {
  const minTokens = inRange("min_tokens", fields.min_tokens, 0, 0x7fff_ffff, 0);
  if (minTokens > maxTokens) {
    throw invalidParam("min_tokens", `min_tokens (${minTokens}) is larger than max_tokens (${maxTokens}).`);
  }
  return {
    stopStrings: readStopStrings(fields.stop),
    includeStopString: fields.include_stop_str_in_output ?? false,
    minTokens,
    skipSpecialTokens: fields.skip_special_tokens ?? true,
  };
}

export function readStopTokenIds(given: Maybe<readonly number[]>, vocabSize: number): number[] {
  const ids = given ?? [];
  if (ids.length > maxStopTokenIds) {
    throw invalidParam("stop_token_ids", `stop_token_ids may hold at most ${maxStopTokenIds} ids.`);
  }
  for (const id of ids) {
    if (id < 0 || id >= vocabSize) {
      throw invalidParam("stop_token_ids", `stop_token_ids holds ${id}, which is no token of this model.`);
    }
  }
  return [...ids];
}

function readStopStrings(given: Maybe<string | readonly string[]>): string[] {
  const stops = typeof given === "string" ? [given] : (given ?? []);
  if (stops.length > maxStopStrings) {
    throw invalidParam("stop", `stop may hold at most ${maxStopStrings} strings.`);
  }
  for (const stop of stops) {
    if (stop === "") throw invalidParam("stop", "A stop string may not be empty.");
    if (stop.length > maxStopStringLength) {
      throw invalidParam("stop", `A stop string may have at most ${maxStopStringLength} characters.`);
    }
  }
  return [...new Set(stops)];
}
