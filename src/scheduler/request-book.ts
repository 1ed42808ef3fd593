/** All live requests, found by id or handle and queued by what could be done with them next. */
import type { RequestSpec } from "./config";
import type { RequestHandle } from "./plan";
import { Request, type RequestState, requestState } from "./request";
import { RequestQueue } from "./request-queue";
import { RequestTable } from "./request-table";

export class RequestBook {
  readonly #byId = new RequestTable((request) => request.id);
  readonly #byHandle = new RequestTable((request) => request.handle);
  readonly #finished: Request[] = [];
  /** Objects of requests that are gone, at most `#maxSpare`. */
  readonly #spare: Request[] = [];
  readonly #maxSpare: number;
  readonly #numGroups: number;
  readonly #counts = new Int32Array(9);
  #nextHandle = 1;
  /** Submitted ones and those retracted without a snapshot. */
  readonly newPrompts = new RequestQueue();
  readonly prefilling = new RequestQueue();
  readonly remotePrefilling = new RequestQueue();
  /** Prompt scheduled whole, or decoding. */
  readonly decodable = new RequestQueue();
  /** Retracted with a snapshot to come back to. */
  readonly recoverable = new RequestQueue();

  /** `maxBatchSize` bounds how many requests end in a step, and with it what is worth keeping for reuse. */
  constructor(numGroups: number, maxBatchSize: number) {
    this.#numGroups = numGroups;
    this.#maxSpare = maxBatchSize * 2;
  }

  get size(): number {
    return this.#byHandle.size;
  }

  get numUnfinished(): number {
    return this.#byHandle.size - this.#finished.length;
  }

  /** Requests that have a slot and tables. */
  get numHoldingBlocks(): number {
    let count = 0;
    for (let state: number = requestState.prefilling; state <= requestState.decoding; state++)
      count += this.#counts[state];
    return count;
  }

  /**
   * A forward row's result is out, the handed-over prompts of a prefill worker apart. Looks at requests that
   * hold blocks only, of which there are no more than slots, however many wait.
   */
  get hasResultsOut(): boolean {
    return awaitsResult(this.prefilling) || awaitsResult(this.decodable);
  }

  countOf(state: RequestState): number {
    return this.#counts[state];
  }

  hasId(id: string): boolean {
    return this.#byId.get(id) !== undefined;
  }

  byId(id: string): Request | undefined {
    return this.#byId.get(id);
  }

  /** Undefined for a request that is gone or was never there. */
  byHandle(handle: RequestHandle): Request | undefined {
    return this.#byHandle.get(handle);
  }

  all(): IterableIterator<Request> {
    return this.#byHandle.values();
  }

  /** Takes a new request in and gives it the next handle. */
  add(spec: RequestSpec, state: RequestState): Request {
    const handle = this.#nextHandle++;
    const spare = this.#spare.pop();
    spare?.begin(handle, spec);
    const request = spare ?? new Request(handle, spec, this.#numGroups);
    this.#byId.add(request);
    this.#byHandle.add(request);
    request.state = state;
    this.#counts[state]++;
    this.#queueOf(request)?.add(request);
    return request;
  }

  /** Moves a request to a state and to the queue that goes with it. */
  moveTo(request: Request, state: RequestState): void {
    const from = this.#queueOf(request);
    this.#counts[request.state]--;
    request.state = state;
    this.#counts[state]++;
    const to = this.#queueOf(request);
    if (state === requestState.finished) this.#finished.push(request);
    if (from === to) return;
    from?.remove(request);
    to?.add(request);
  }

  /** Retraction settles both the state and whether there is something to come back to. */
  retract(request: Request, hasRecoverableSnapshot: boolean): void {
    this.#queueOf(request)?.remove(request);
    this.#counts[request.state]--;
    this.#counts[requestState.retracted]++;
    request.state = requestState.retracted;
    request.hasRecoverableSnapshot = hasRecoverableSnapshot;
    this.#queueOf(request)?.add(request);
  }

  /** Forgets finished requests; from now on their ids may be used again. */
  dropFinished(): void {
    if (this.#finished.length === 0) return;
    for (const request of this.#finished) {
      this.#byId.remove(request);
      this.#byHandle.remove(request);
      this.#counts[requestState.finished]--;
      if (this.#spare.length < this.#maxSpare) this.#spare.push(request);
    }
    this.#finished.length = 0;
  }

  #queueOf(request: Request): RequestQueue | undefined {
    switch (request.state) {
      case requestState.submitted:
        return this.newPrompts;
      case requestState.retracted:
        return request.hasRecoverableSnapshot ? this.recoverable : this.newPrompts;
      case requestState.prefilling:
        return this.prefilling;
      case requestState.remotePrefilling:
        return this.remotePrefilling;
      case requestState.prefillDone:
      case requestState.decoding:
        return this.decodable;
      default:
        return undefined;
    }
  }
}

function awaitsResult(queue: RequestQueue): boolean {
  for (let request = queue.first; request !== undefined; request = request.next) {
    if (request.resultsInFlight > 0) return true;
  }
  return false;
}
