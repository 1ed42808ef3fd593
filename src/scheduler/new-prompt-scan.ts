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
  readonly #lastTried = new WaitingRequest();
  readonly #firstShort = new WaitingRequest();
  #attemptsLeft = 0;

  /** The prompt refused for capacity that stands first in the queue, as far as it was walked. */
  get firstShort(): Request | undefined {
    return this.#firstShort.request;
  }

  /** The first prompt worth trying. */
  start(queue: RequestQueue, version: number, budget: number): Request | undefined {
    this.#attemptsLeft = maxAdmissionAttemptsPerRound;
    const isSame = this.#version === version && this.#budget === budget;
    const lastTried = this.#lastTried.request;
    if (isSame && lastTried !== undefined && this.#lastTried.waits && this.#firstShort.waits)
      return lastTried.next;
    this.#version = version;
    this.#budget = budget;
    this.#lastTried.set(undefined);
    this.#firstShort.set(undefined);
    return queue.first;
  }

  /** Another prompt may be tried in this round. */
  get mayTry(): boolean {
    return this.#attemptsLeft > 0;
  }

  /** Notes a refusal. */
  refused(request: Request, isShort: boolean): void {
    this.#attemptsLeft--;
    this.#lastTried.set(request);
    if (isShort && this.#firstShort.request === undefined) this.#firstShort.set(request);
  }

  /** Somebody got in, or the books moved: what was refused before may get in now. */
  forget(): void {
    this.#version = -1;
  }
}

/** A request that was refused, told by its handle from one that came after it in the same object. */
class WaitingRequest {
  request: Request | undefined;
  #handle = 0;

  set(request: Request | undefined): void {
    this.request = request;
    this.#handle = request?.handle ?? 0;
  }

  /** Nothing has become of it since; true also of nobody. */
  get waits(): boolean {
    if (this.request === undefined) return true;
    return this.request.handle === this.#handle && this.request.admitsLikeNewPrompt;
  }
}
