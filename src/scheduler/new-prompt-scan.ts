/**
 * Walks the queue of new prompts without asking again what was answered: a prompt that did not get in
 * under some state of the books and some budget does not get in under the same. However long the queue,
 * a round tries a bounded number of prompts and looks at no other.
 */
import { maxAdmissionAttemptsPerRound } from "../limits";
import type { Request } from "./request";
import type { RequestQueue } from "./request-queue";

export class NewPromptScan {
  /** The books' version and the budget under which everybody up to `#lastTried` was refused. */
  #version = -1;
  #budget = 0;
  #lastTried: Request | undefined;
  #firstShort: Request | undefined;
  #attemptsLeft = 0;

  /** The prompt refused for capacity that stands first in the queue, as far as it was walked. */
  get firstShort(): Request | undefined {
    return this.#firstShort;
  }

  /** The first prompt worth trying. */
  start(queue: RequestQueue, version: number, budget: number): Request | undefined {
    this.#attemptsLeft = maxAdmissionAttemptsPerRound;
    const isSame = this.#version === version && this.#budget === budget;
    if (
      isSame &&
      isWaiting(this.#lastTried) &&
      (this.#firstShort === undefined || isWaiting(this.#firstShort))
    ) {
      return this.#lastTried?.next;
    }
    this.#version = version;
    this.#budget = budget;
    this.#lastTried = undefined;
    this.#firstShort = undefined;
    return queue.first;
  }

  /** Another prompt may be tried in this round. */
  get mayTry(): boolean {
    return this.#attemptsLeft > 0;
  }

  /** Notes a refusal. */
  refused(request: Request, isShort: boolean): void {
    this.#attemptsLeft--;
    this.#lastTried = request;
    if (isShort) this.#firstShort ??= request;
  }

  /** Somebody got in, or the books moved: what was refused before may get in now. */
  forget(): void {
    this.#version = -1;
  }
}

function isWaiting(request: Request | undefined): boolean {
  return request?.admitsLikeNewPrompt === true;
}
