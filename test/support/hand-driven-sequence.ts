/**
 * One sequence driven by hand: it takes blocks from a shuffled deck, gives them back when they slide out of
 * the window, and keeps what the model said about every position.
 */
import { decodeRow, type HandMadeRow, planOf, prefillRow, type TableChange } from "./hand-made-plan";
import { Random } from "./random";
import { rowsOf, type ToyModel, wholeVocabulary } from "./toy-model";

/** Ids of free LCM blocks in random order; a block serves one group at a time. */
export class BlockDeck {
  readonly #free: number[];

  constructor(numLcmBlocks: number, seed: number) {
    this.#free = new Random(seed).shuffled(Array.from({ length: numLcmBlocks }, (_, i) => i + 1));
  }

  draw(count: number): number[] {
    if (count > this.#free.length)
      throw new Error(`${count} blocks are wanted, ${this.#free.length} are left`);
    return this.#free.splice(0, count);
  }

  /** To the end of the line, so that others are used before it comes back. */
  giveBack(ids: readonly number[]): void {
    this.#free.push(...ids);
  }
}

interface GroupTable {
  readonly ids: number[];
  numNulled: number;
}

export class HandDrivenSequence {
  readonly tokens: Int32Array;
  readonly promptLength: number;
  /** Log-probabilities of the token after each computed position. */
  readonly logprobs: Float32Array[] = [];
  readonly generated: number[] = [];
  readonly #model: ToyModel;
  readonly #deck: BlockDeck;
  readonly #slot: number;
  readonly #tables: readonly GroupTable[];
  /** Blocks drawn for the row made last, by group. */
  #fresh: number[][] = [];
  #numComputed = 0;

  constructor(model: ToyModel, deck: BlockDeck, slot: number, prompt: Int32Array) {
    this.#model = model;
    this.#deck = deck;
    this.#slot = slot;
    this.promptLength = prompt.length;
    this.tokens = new Int32Array(prompt.length + 256);
    this.tokens.set(prompt);
    this.#tables = model.groups.map(() => ({ ids: [], numNulled: 0 }));
    model.sampling.set(slot, wholeVocabulary(prompt.length));
  }

  get isPrefilled(): boolean {
    return this.#numComputed >= this.promptLength;
  }

  get fresh(): readonly (readonly number[])[] {
    return this.#fresh;
  }

  /** The next chunk of the prompt, of at most `size` tokens behind `replay` that are fed again. */
  prefill(size = this.promptLength, replay = 0): HandMadeRow {
    const begin = this.#numComputed;
    const end = Math.min(begin + size, this.promptLength);
    const row = prefillRow({
      slot: this.#slot,
      tokens: this.tokens,
      begin,
      size: end - begin,
      replay: Math.min(begin, replay),
      prefillLength: this.promptLength,
      completesPrompt: end === this.promptLength,
    });
    return { row, changes: this.#grow(end) };
  }

  /** One decode step on the token generated last. */
  decode(): HandMadeRow {
    const begin = this.#numComputed;
    return {
      row: decodeRow({ slot: this.#slot, begin, tokens: this.tokens }),
      changes: this.#grow(begin + 1),
    };
  }

  /** Takes in what the model said about the row made last. */
  take(
    promptRows: readonly Float32Array[],
    sampledRows: readonly Float32Array[],
    token: number | undefined,
  ): void {
    this.logprobs.push(...promptRows, ...sampledRows);
    if (token === undefined) return;
    this.tokens[this.promptLength + this.generated.length] = token;
    this.generated.push(token);
  }

  close(): void {
    for (const { ids } of this.#tables) this.#deck.giveBack(ids.filter((id) => id !== 0));
  }

  #grow(end: number): TableChange[] {
    const begin = this.#numComputed;
    this.#numComputed = end;
    this.#fresh = [];
    return this.#model.groups.map(({ blockGranularity, slidingWindowTokens }, group) => {
      const table = this.#tables[group] as GroupTable;
      // The first query of this step still sees its window.
      const dead = slidingWindowTokens === undefined ? 0 : Math.max(0, begin - slidingWindowTokens + 1);
      const nulled = [table.numNulled, Math.floor(dead / blockGranularity)] as const;
      this.#deck.giveBack(table.ids.slice(...nulled));
      table.ids.fill(0, ...nulled);
      table.numNulled = nulled[1];
      const appended = this.#deck.draw(Math.ceil(end / blockGranularity) - table.ids.length);
      table.ids.push(...appended);
      this.#fresh.push(appended);
      return { nulled: [...nulled], appended, length: table.ids.length };
    });
  }
}

/**
 * One plan for these sequences: the next chunk of those
 * that are at their prompt, a decode step of the others.
 */
export function stepTogether(
  model: ToyModel,
  sequences: readonly HandDrivenSequence[],
  chunk?: number,
  replay?: number,
): void {
  const made = sequences.map((sequence) => ({
    sequence,
    made: sequence.isPrefilled ? sequence.decode() : sequence.prefill(chunk, replay),
  }));
  const ordered = [
    ...made.filter(({ made: { row } }) => row.isPrefill),
    ...made.filter(({ made: { row } }) => !row.isPrefill),
  ];
  const blocksToZero = model.groups.map((_, group) =>
    sequences.flatMap((sequence) => sequence.fresh[group] ?? []),
  );
  const result = model.run(
    planOf(
      ordered.map((entry) => entry.made),
      { blocksToZero },
    ),
  );
  let next = 0;
  ordered.forEach(({ sequence }, index) => {
    const count = result.tokenCounts[index] as number;
    const token = count > 0 ? result.tokens[next++] : undefined;
    sequence.take(rowsOf(result.promptLogprobs.get(index)), rowsOf(result.logprobs.get(index)), token);
  });
}

export interface AloneOptions {
  readonly chunk?: number;
  readonly replay?: number;
  readonly numTokens?: number;
  readonly seed?: number;
  readonly slot?: number;
}

/** Runs a sequence alone: its prompt in chunks, then `numTokens` tokens. */
export function runAlone(
  model: ToyModel,
  prompt: Int32Array,
  { chunk, replay, numTokens = 1, seed = 1, slot = 1 }: AloneOptions = {},
): HandDrivenSequence {
  const deck = new BlockDeck(model.numLcmBlocks, seed);
  const sequence = new HandDrivenSequence(model, deck, slot, prompt);
  while (!sequence.isPrefilled) stepTogether(model, [sequence], chunk, replay);
  while (sequence.generated.length < numTokens) stepTogether(model, [sequence]);
  sequence.close();
  return sequence;
}
