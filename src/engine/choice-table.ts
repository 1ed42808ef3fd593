/**
 * Live choices by request, and by the scheduler's handle;
 * siblings wait here until the first one's prompt is published.
 */
import { assert } from "../assert";
import { Choice } from "./choice";
import type { EngineRequest } from "./protocol";

interface Entry {
  readonly live: Map<number, Choice>;
  /** Choices not yet submitted. */
  waiting: Choice[];
}

export class ChoiceTable {
  readonly #entries = new Map<number, Entry>();
  readonly #byHandle = new Map<number, Choice>();
  readonly #endTokens: readonly number[];
  readonly #randomUint32: () => number;

  constructor(endTokens: readonly number[], randomUint32: () => number) {
    this.#endTokens = endTokens;
    this.#randomUint32 = randomUint32;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Registers a request; the choices to submit now are returned, the others wait for release(). */
  add(request: EngineRequest): readonly Choice[] {
    assert(!this.#entries.has(request.id), `request ${request.id} was submitted twice`);
    const seed = request.sampling.seed ?? { low: this.#randomUint32(), high: this.#randomUint32() };
    const choices = Array.from(
      { length: request.numChoices },
      (_, index) => new Choice(request, index, this.#endTokens, seed),
    );
    const [first, ...others] = choices as [Choice, ...Choice[]];
    this.#entries.set(request.id, {
      live: new Map(choices.map((choice) => [choice.index, choice])),
      waiting: others,
    });
    return [first];
  }

  bind(choice: Choice, handle: number): void {
    choice.handle = handle;
    this.#byHandle.set(handle, choice);
  }

  byHandle(handle: number): Choice | undefined {
    return this.#byHandle.get(handle);
  }

  find(id: number, index: number): Choice | undefined {
    return this.#entries.get(id)?.live.get(index);
  }

  all(): readonly Choice[] {
    return [...this.#entries.values()].flatMap(({ live }) => [...live.values()]);
  }

  /** Siblings that may start now; each is handed out once. */
  release(id: number): readonly Choice[] {
    const entry = this.#entries.get(id);
    if (entry === undefined) return [];
    const waiting = entry.waiting;
    entry.waiting = [];
    return waiting;
  }

  remove(choice: Choice): void {
    const entry = this.#entries.get(choice.request.id);
    this.#byHandle.delete(choice.handle);
    if (entry === undefined) return;
    entry.live.delete(choice.index);
    entry.waiting = entry.waiting.filter((other) => other !== choice);
    if (entry.live.size === 0) this.#entries.delete(choice.request.id);
  }

  /** Removes every choice of a request and returns those that were there. */
  removeAll(id: number): readonly Choice[] {
    const choices = [...(this.#entries.get(id)?.live.values() ?? [])];
    for (const choice of choices) this.remove(choice);
    return choices;
  }
}
