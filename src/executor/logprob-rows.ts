/** Log-probabilities on their way from the device to the client. */

/** Log-probabilities of consecutive positions. Row i holds `count` ids and values, descending. */
export interface LogprobRows {
  /** Position in the whole sequence of the token that row 0 speaks about. */
  readonly begin: number;
  readonly numRows: number;
  /** Alternatives a row. For the whole vocabulary `ids` is empty and values are in id order. */
  readonly count: number;
  readonly ids: Int32Array;
  readonly values: Float32Array;
  /** Of the token that stands (or was sampled) there: its log-probability and its rank, counted from 1. */
  readonly chosenValues: Float32Array;
  readonly chosenRanks: Int32Array;
}
