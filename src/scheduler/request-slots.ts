/** The request slots 1..n that executors index by; a freed one goes to the back of the line. */
export class RequestSlots {
  readonly #ring: Int32Array;
  #head = 0;
  #numFree: number;

  constructor(numSlots: number) {
    this.#ring = new Int32Array(Math.max(numSlots, 1));
    for (let i = 0; i < numSlots; i++) this.#ring[i] = i + 1;
    this.#numFree = numSlots;
  }

  get numFree(): number {
    return this.#numFree;
  }

  /** The slot that has been free longest, 0 when none is. */
  take(): number {
    if (this.#numFree === 0) return 0;
    const slot = this.#ring[this.#head];
    this.#head = (this.#head + 1) % this.#ring.length;
    this.#numFree--;
    return slot;
  }

  give(slot: number): void {
    this.#ring[(this.#head + this.#numFree) % this.#ring.length] = slot;
    this.#numFree++;
  }
}
