/**
 * Requests of one kind in submission order: linked, so that
 * joining and leaving cost nothing however long the queue is.
 */
import type { Request } from "./request";

export class RequestQueue {
  first: Request | undefined;
  #last: Request | undefined;
  size = 0;

  /** Puts a request that is in no queue at its place; nearly always that is the end. */
  add(request: Request): void {
    let before = this.#last;
    if (before !== undefined && this.first !== undefined && request.handle < this.first.handle)
      before = undefined;
    while (before !== undefined && before.handle > request.handle) before = before.previous;
    const after = before === undefined ? this.first : before.next;
    request.previous = before;
    request.next = after;
    if (before === undefined) this.first = request;
    else before.next = request;
    if (after === undefined) this.#last = request;
    else after.previous = request;
    this.size++;
  }

  remove(request: Request): void {
    if (request.previous === undefined) this.first = request.next;
    else request.previous.next = request.next;
    if (request.next === undefined) this.#last = request.previous;
    else request.next.previous = request.previous;
    request.previous = undefined;
    request.next = undefined;
    this.size--;
  }
}
