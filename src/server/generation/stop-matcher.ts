/**
 * Finds the first stop string in a text that arrives in parts, and holds back what may still become one. The
 * match that ends first wins, of several with one end the longest, so that the result does not depend on how
 * the text was cut.
 */

export interface StopMatch {
  /** Text before the match that was not given out yet; with the match itself if that was asked for. */
  readonly text: string;
  readonly stopString: string;
}

export class StopMatcher {
  readonly #stopStrings: readonly string[];
  readonly #longest: number;
  readonly #includeMatch: boolean;
  /** Text not given out: a proper beginning of some stop string. */
  #held = "";

  constructor(stopStrings: readonly string[], includeMatch: boolean) {
    this.#stopStrings = stopStrings;
    this.#longest = Math.max(0, ...stopStrings.map((stop) => stop.length));
    this.#includeMatch = includeMatch;
  }

  /** Takes the next part of the text. A string is what may be given out now. */
  push(part: string): string | StopMatch {
    if (this.#longest === 0 || part === "") return part;
    const text = this.#held + part;
    const match = this.#firstMatch(text, this.#held.length);
    if (match !== undefined) {
      this.#held = "";
      return {
        text: text.slice(0, this.#includeMatch ? match.end : match.begin),
        stopString: text.slice(match.begin, match.end),
      };
    }
    const kept = this.#heldLength(text);
    this.#held = text.slice(text.length - kept);
    return text.slice(0, text.length - kept);
  }

  /** Takes a part that cannot be the end of a match (the shortest length is not reached yet). */
  pushUnmatched(part: string): string {
    if (this.#longest === 0) return part;
    const text = this.#held + part;
    const kept = this.#heldLength(text);
    this.#held = text.slice(text.length - kept);
    return text.slice(0, text.length - kept);
  }

  /** The text is over: what was held back belongs to it. */
  flush(): string {
    const text = this.#held;
    this.#held = "";
    return text;
  }

  /** The first match that ends behind `seenLength`. */
  #firstMatch(
    text: string,
    seenLength: number,
  ): { readonly begin: number; readonly end: number } | undefined {
    let best: { begin: number; end: number } | undefined;
    for (const stop of this.#stopStrings) {
      const begin = text.indexOf(stop, Math.max(0, seenLength - stop.length + 1));
      if (begin < 0) continue;
      const end = begin + stop.length;
      if (best === undefined || end < best.end || (end === best.end && begin < best.begin))
        best = { begin, end };
    }
    return best;
  }

  /** Length of the longest end of `text` that is a proper beginning of a stop string. */
  #heldLength(text: string): number {
    for (let length = Math.min(text.length, this.#longest - 1); length > 0; length--) {
      const tail = text.slice(text.length - length);
      if (this.#stopStrings.some((stop) => stop.length > length && stop.startsWith(tail))) return length;
    }
    return 0;
  }
}
