/** Log-probabilities of a prompt's positions, gathered from the steps that computed them. */
import type { LogprobRows } from "../../engine/protocol";

/** Where the row of one position is. */
export interface LogprobRow {
  readonly rows: LogprobRows;
  readonly index: number;
}

export class PromptLogprobs {
  readonly #rows: (LogprobRow | undefined)[];

  constructor(promptLength: number) {
    this.#rows = new Array(promptLength).fill(undefined);
  }

  /** A position computed again (the request was set back meanwhile) keeps its first row. */
  add(rows: LogprobRows): void {
    for (let index = 0; index < rows.numRows; index++) {
      const position = rows.begin + index;
      if (position < this.#rows.length) this.#rows[position] ??= { rows, index };
    }
  }

  /** Undefined for position 0, which nothing predicts. */
  at(position: number): LogprobRow | undefined {
    return this.#rows[position];
  }

  get length(): number {
    return this.#rows.length;
  }
}
