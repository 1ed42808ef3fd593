/** A growing list of int32 that keeps its storage between uses. */
export class Int32List {
  items: Int32Array;
  length = 0;

  constructor(capacity = 16) {
    this.items = new Int32Array(capacity);
  }

  push(value: number): void {
    if (this.length === this.items.length) this.reserve(this.length + 1);
    this.items[this.length++] = value;
  }

  /** Makes room for `capacity` items in all; the length stays. */
  reserve(capacity: number): void {
    if (capacity <= this.items.length) return;
    const grown = new Int32Array(Math.max(capacity, this.items.length * 2));
    grown.set(this.items);
    this.items = grown;
  }

  clear(): void {
    this.length = 0;
  }
}
