/** A growing list of int32 that keeps its storage between uses. */
const noItems = new Int32Array(0);

export class Int32List {
  items: Int32Array;
  length = 0;

  /** With a capacity of 0 nothing is allocated before the first item. */
  constructor(capacity = 16) {
    this.items = capacity === 0 ? noItems : new Int32Array(capacity);
  }

  push(value: number): void {
    if (this.length === this.items.length) this.reserve(this.length + 1);
    this.items[this.length++] = value;
  }

  /** Makes room for `capacity` items in all; the length stays. */
  reserve(capacity: number): void {
    if (capacity <= this.items.length) return;
    const grown = new Int32Array(Math.max(capacity, this.items.length * 2, 4));
    grown.set(this.items);
    this.items = grown;
  }

  clear(): void {
    this.length = 0;
  }
}
