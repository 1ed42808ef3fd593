/**
 * Makes one choice's text out of its tokens and decides when and why it ends. Streamed and whole answers,
 * over HTTP and over WebSocket, all go through it, so they cannot disagree.
 */
import type { FinishReason, LogprobRows, TokenChunk } from "../../engine/protocol";
import { IncrementalDetokenizer } from "../../tokenizer/detokenizer";
import type { TokenBytes } from "../../tokenizer/token-bytes";
import { StopMatcher } from "./stop-matcher";

export interface ChoiceOptions {
  readonly stopStrings: readonly string[];
  readonly includeStopString: boolean;
  readonly minTokens: number;
  readonly skipSpecialTokens: boolean;
}

/** What one chunk added to a choice. */
export interface ChoiceUpdate {
  readonly text: string;
  /** Tokens that count: those behind a stop string are gone. */
  readonly tokens: Int32Array;
  /** Rows for `tokens`; the engine's rows may be more. */
  readonly logprobs: LogprobRows | undefined;
  /** Set on the last update. `stopped` = a stop string was found here: the engine must be told. */
  readonly finish?: ChoiceFinish;
}

export interface ChoiceFinish {
  readonly reason: "stop" | "length" | "abort" | "error";
  /** The stop string or the stop token id that ended it; null for an end token and for the limit. */
  readonly stopReason: string | number | null;
  readonly stoppedByString: boolean;
  readonly error?: string;
}

export class ChoiceAssembler {
  readonly #options: ChoiceOptions;
  readonly #endTokens: ReadonlySet<number>;
  readonly #detokenizer: IncrementalDetokenizer;
  readonly #matcher: StopMatcher;
  #numTokens = 0;
  #isFinished = false;

  constructor(vocabulary: TokenBytes, endTokens: ReadonlySet<number>, options: ChoiceOptions) {
    this.#options = options;
    this.#endTokens = endTokens;
    this.#detokenizer = new IncrementalDetokenizer(vocabulary, {
      skipSpecialTokens: options.skipSpecialTokens,
      atTextStart: false,
    });
    this.#matcher = new StopMatcher(options.stopStrings, options.includeStopString);
  }

  /** Tokens that count as generated. */
  get numTokens(): number {
    return this.#numTokens;
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** Undefined once the choice is finished: the engine may not know it yet. */
  push(chunk: TokenChunk): ChoiceUpdate | undefined {
    if (this.#isFinished) return undefined;
    const { tokens, logprobs } = chunk;
    let text = "";
    for (let index = 0; index < tokens.length; index++) {
      this.#numTokens += 1;
      const isStopToken = chunk.stopTokenId !== undefined && index === tokens.length - 1;
      if (isStopToken && !this.#options.includeStopString) break;
      const result = this.#pushToken(tokens[index]);
      if (typeof result === "string") {
        text += result;
        continue;
      }
      this.#isFinished = true;
      return {
        text: text + result.text,
        tokens: tokens.subarray(0, index + 1),
        logprobs,
        finish: { reason: "stop", stopReason: result.stopString, stoppedByString: true },
      };
    }
    if (chunk.finish === undefined) return { text, tokens, logprobs };
    return this.#finish(chunk, chunk.finish, text);
  }

  #pushToken(id: number) {
    const text = this.#detokenizer.push(id);
    return this.#numTokens < this.#options.minTokens
      ? this.#matcher.pushUnmatched(text)
      : this.#matcher.push(text);
  }

  #finish(chunk: TokenChunk, reason: FinishReason, text: string): ChoiceUpdate {
    this.#isFinished = true;
    const { tokens, logprobs, stopTokenId } = chunk;
    const tail = this.#matcher.push(this.#detokenizer.flush());
    const rest = typeof tail === "string" ? tail + this.#matcher.flush() : tail.text;
    const isEndToken = stopTokenId === undefined || this.#endTokens.has(stopTokenId);
    return {
      text: text + rest,
      tokens,
      logprobs,
      finish: {
        reason,
        stopReason: isEndToken ? null : stopTokenId,
        stoppedByString: false,
        ...(chunk.error === undefined ? {} : { error: chunk.error }),
      },
    };
  }
}
