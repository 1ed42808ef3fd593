/** The time as the server is given it. */

export interface Clock {
  /** Milliseconds since some fixed moment, never going back. */
  monotonicMs(): number;
  unixSeconds(): number;
}
