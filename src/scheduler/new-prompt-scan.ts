/**
 * Walks the queue of new prompts without asking again what was answered: a prompt that did not get in under
 * some state of the books and some budget does not get in under the same. A round does a bounded part of it.
 * When the books move before a walk is through, the next begins with the head of the queue again, but goes on
 * behind where the last one stopped: who waits far back is tried too, however long the queue is.
 */
import { headShareOfAttempts, maxAdmissionAttemptsPerRound, maxAdmissionWorkPerRound } from "../limits";
import type { Request } from "./request";
import type { RequestQueue } from "./request-queue";

/** Hashing a page costs about as much as looking up so many. */
const lookupsPerHash = 8;

/** The parts of a walk, in turn. */
const part = { head: 0, behind: 1, between: 2, tail: 3 } as const;
type Part = (typeof part)[keyof typeof part];

export class NewPromptScan {
  /** The books' version and the budget of the walk. */
  #version = -1;
  #budget = 0;
  #part: Part = part.head;
  readonly #lastTried = new WaitingRequest();
  /** Whom the walk tries next; nobody when it is through. */
  readonly #next = new WaitingRequest();
  readonly #firstShort = new WaitingRequest();
  /** Where the part behind begins: nobody from here on was reached by the walk before. */
  readonly #resume = new WaitingRequest();
  /** The last of the head, and the last of the queue when the part behind came to its end. */
  readonly #headEnd = new WaitingRequest();
  readonly #tailEnd = new WaitingRequest();
  #attemptsLeft = 0;
  #workLeft = 0;
  #wasBehind = false;

  /** The prompt refused for capacity that stands first in the queue, as far as it was walked. */
  get firstShort(): Request | undefined {
    return this.#firstShort.request;
  }

  /** The first prompt worth trying. */
  start(queue: RequestQueue, version: number, budget: number): Request | undefined {
    this.#attemptsLeft = maxAdmissionAttemptsPerRound;
    this.#workLeft = maxAdmissionWorkPerRound;
    this.#wasBehind = false;
    const isSame = this.#version === version && this.#budget === budget;
    if (isSame && this.#lastTried.isThere && this.#next.waits && this.#firstShort.waits) {
      // Through: whoever has joined since stands behind the last.
      return this.#next.request ?? this.#lastTried.request?.next;
    }
    this.#resume.set(this.#next.isThere ? this.#next.request : undefined);
    this.#version = version;
    this.#budget = budget;
    this.#part = part.head;
    this.#lastTried.set(undefined);
    this.#next.set(undefined);
    this.#firstShort.set(undefined);
    return queue.first;
  }

  /** Another prompt may be tried in this round; at least one at the head and one behind may. */
  get mayTry(): boolean {
    if (this.#attemptsLeft <= 0) return false;
    return this.#workLeft > 0 || (this.#part !== part.head && !this.#wasBehind);
  }

  /** Notes a refusal and what it cost: pages looked up and pages hashed. Returns whom to try next. */
  refused(request: Request, isShort: boolean, pages = 0, hashedPages = 0): Request | undefined {
    this.#attemptsLeft--;
    this.#workLeft -= pages + lookupsPerHash * hashedPages;
    this.#wasBehind ||= this.#part !== part.head;
    // Whom the head reaches by itself is not behind.
    if (this.#part === part.head && request === this.#resume.request) this.#resume.set(undefined);
    this.#lastTried.set(request);
    const stood = this.#firstShort.request;
    if (isShort && (stood === undefined || request.handle < stood.handle)) this.#firstShort.set(request);
    this.#next.set(this.#following(request));
    return this.#next.request;
  }

  /** Somebody got in, so that what was refused before may get in now; `next` stood behind. */
  admitted(next: Request | undefined): void {
    this.#version = -1;
    this.#next.set(next);
  }

  #following(last: Request): Request | undefined {
    switch (this.#part) {
      case part.head:
        if (!this.#isHeadOver || !this.#resume.isThere || last.next === undefined) return last.next;
        this.#headEnd.set(last);
        this.#part = part.behind;
        return this.#resume.request;
      case part.behind:
        if (last.next !== undefined) return last.next;
        this.#tailEnd.set(last);
        this.#part = part.between;
        return this.#orTail(this.#headEnd.isThere ? this.#headEnd.request?.next : undefined);
      case part.between:
        return this.#orTail(last.next);
      default:
        return last.next;
    }
  }

  /** `next`, or, where the gap ends, whoever has joined the queue since. */
  #orTail(next: Request | undefined): Request | undefined {
    if (next !== undefined && next !== this.#resume.request) return next;
    this.#part = part.tail;
    this.#lastTried.set(this.#tailEnd.request);
    return this.#tailEnd.isThere ? this.#tailEnd.request?.next : undefined;
  }

  get #isHeadOver(): boolean {
    const rest = 1 - headShareOfAttempts;
    return (
      this.#attemptsLeft <= maxAdmissionAttemptsPerRound * rest ||
      this.#workLeft <= maxAdmissionWorkPerRound * rest
    );
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

  /** There is one, and nothing has become of it since. */
  get isThere(): boolean {
    return this.request?.handle === this.#handle && this.request.admitsLikeNewPrompt;
  }

  /** Nothing has become of it since; true also of nobody. */
  get waits(): boolean {
    return this.request === undefined || this.isThere;
  }
}
