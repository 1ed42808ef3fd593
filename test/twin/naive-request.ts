/** A request as the naive scheduler keeps it: plain fields, tokens in one array. */
import type { NaiveTable } from "./naive-cache";

export type NaiveState = "submitted" | "prefilling" | "prefillDone" | "decoding" | "retracted";

export interface NaiveRequest {
  readonly id: string;
  readonly namespace: string;
  readonly prompt: number;
  readonly maxNew: number;
  readonly maxCached: number;
  tokens: number[];
  prefill: number;
  state: NaiveState;
  tables: NaiveTable[];
  slot: number;
  epoch: number;
  known: number;
  promotion: number;
  boundaries: number[];
  begin: number;
  end: number;
  inFlight: number;
  reserve: number;
  retractions: number;
  retractedAt: number;
  recoverable: boolean;
  resumes: boolean;
  landed: number;
}

/** A request that was just submitted. */
export function newRequest(
  id: string,
  namespace: string,
  tokens: readonly number[],
  maxNew: number,
  maxCached: number,
  tables: NaiveTable[],
): NaiveRequest {
  return {
    id,
    namespace,
    prompt: tokens.length,
    maxNew,
    maxCached,
    tokens: [...tokens],
    prefill: tokens.length,
    state: "submitted",
    tables,
    slot: 0,
    epoch: 0,
    known: 0,
    promotion: 0,
    boundaries: [],
    begin: 0,
    end: 0,
    inFlight: 0,
    reserve: 0,
    retractions: 0,
    retractedAt: 0,
    recoverable: false,
    resumes: false,
    landed: 0,
  };
}
