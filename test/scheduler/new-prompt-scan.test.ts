/** How far a long queue is walked in a round: everybody in their turn, nobody twice, and nobody never. */
import { describe, expect, test } from "bun:test";
import { maxAdmissionAttemptsPerRound, maxAdmissionWorkPerRound } from "../../src/limits";
import { NewPromptScan } from "../../src/scheduler/new-prompt-scan";
import { type Request, requestState } from "../../src/scheduler/request";
import { RequestBook } from "../../src/scheduler/request-book";
import { Random } from "../support/random";
import { Driver, F, tokens } from "./driver";

const budget = 64;

class Queue {
  readonly book = new RequestBook(1, 4);
  readonly scan = new NewPromptScan();
  #made = 0;

  constructor(size: number) {
    this.join(size);
  }

  join(count: number): void {
    for (let i = 0; i < count; i++) {
      const requestId = `r${this.#made++}`;
      this.book.add({ requestId, tokens: Int32Array.of(1, 2, 3) }, requestState.submitted);
    }
  }

  leave(request: Request): void {
    this.book.moveTo(request, requestState.finished);
    this.book.dropFinished();
  }

  get waiting(): Request[] {
    return [...this.book.all()].filter((request) => request.admitsLikeNewPrompt);
  }

  /** Handles of those tried in one round that refuses everybody; each costs `pages`. */
  round(version: number, pages = 0): number[] {
    const tried: number[] = [];
    let request = this.scan.start(this.book.newPrompts, version, budget);
    while (request !== undefined && this.scan.mayTry) {
      tried.push(request.handle);
      request = this.scan.refused(request, true, pages);
    }
    return tried;
  }

  /** All that one state of the books brings, round after round. */
  walk(version: number): number[] {
    const tried: number[] = [];
    for (let more = this.round(version); more.length > 0; more = this.round(version)) tried.push(...more);
    return tried;
  }
}

const handlesUpTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);
const inOrder = (handles: readonly number[]) => handles.toSorted((a, b) => a - b);

describe("in one state of the books", () => {
  for (const size of [1, 511, 512, 513, 2000]) {
    test(`each of ${size} is asked once, whatever was cut off before, and late comers are too`, () => {
      const queue = new Queue(size);
      expect(queue.walk(1)).toEqual(handlesUpTo(size));
      for (const cuts of [1, 2, 3]) {
        for (let cut = 0; cut < cuts; cut++) queue.round(10 * cuts + cut);
        expect(inOrder(queue.walk(10 * cuts + cuts))).toEqual(handlesUpTo(size));
      }
      queue.join(3);
      expect(queue.walk(33)).toEqual([size + 1, size + 2, size + 3]);
    });
  }

  test("the first who was short is the first of the queue, wherever the walk began", () => {
    const queue = new Queue(1000);
    queue.round(1);
    queue.round(2);
    queue.walk(3);
    expect(queue.scan.firstShort?.handle).toBe(1);
  });
});

describe("when the books never rest", () => {
  test("the head is asked in every round, and everybody within as many as the queue is long", () => {
    const queue = new Queue(3000);
    const lastTried = new Map<number, number>();
    const numRounds = 60;
    let longest = 0;
    for (let round = 1; round <= numRounds; round++) {
      const tried = queue.round(round);
      expect(tried[0]).toBe(1);
      expect(tried).toHaveLength(maxAdmissionAttemptsPerRound);
      expect(new Set(tried).size).toBe(tried.length);
      for (const handle of tried) {
        longest = Math.max(longest, round - (lastTried.get(handle) ?? 0));
        lastTried.set(handle, round);
      }
    }
    expect(lastTried.size).toBe(3000);
    expect(longest).toBeLessThanOrEqual(Math.ceil(3000 / (maxAdmissionAttemptsPerRound / 2)) + 1);
  });

  test("prompts that cost a round each do not hold up those behind", () => {
    const queue = new Queue(10);
    const seen = new Set<number>();
    for (let round = 1; round <= 10; round++) {
      const tried = queue.round(round, maxAdmissionWorkPerRound);
      expect(tried.length).toBeLessThanOrEqual(2);
      for (const handle of tried) seen.add(handle);
    }
    expect(inOrder([...seen])).toEqual(handlesUpTo(10));
  });

  test("the walk goes on behind whoever got in", () => {
    const queue = new Queue(2000);
    const reached = queue.round(1).at(-1) as number;
    const head = maxAdmissionAttemptsPerRound / 2;
    let request = queue.scan.start(queue.book.newPrompts, 2, budget);
    for (let i = 0; i < head; i++) request = queue.scan.refused(request as Request, true);
    expect(request?.handle).toBe(reached + 1);
    queue.scan.admitted(request?.next);
    queue.leave(request as Request);
    expect(queue.round(3)[head]).toBe(reached + 2);
  });

  test("nobody is forgotten among comers, leavers and rounds of any luck", () => {
    const random = new Random(7);
    const queue = new Queue(1200);
    const missedStates = new Map<number, number>();
    let version = 1;
    for (let round = 1; round <= 600; round++) {
      const isNewState = random.integer(0, 1) === 0;
      if (isNewState) version++;
      if (random.integer(0, 2) === 0) queue.leave(random.pick(queue.waiting));
      queue.join(random.integer(0, 1));
      const tried = queue.round(version);
      const asked = new Set(tried);
      expect(asked.size).toBe(tried.length);
      for (const { handle } of queue.waiting) {
        const missed = asked.has(handle) ? 0 : (missedStates.get(handle) ?? 0) + Number(isNewState);
        if (missed > 16) throw new Error(`${handle} was not asked in ${missed} states of the books`);
        missedStates.set(handle, missed);
      }
    }
  });

  test("a prompt that fits gets in, however many that do not stand in front of it", () => {
    const d = new Driver({ P: 4, pool: 24, T: 64, B: 8, groups: [F(4)] });
    d.submit("runs", tokens(8), { maxNewTokens: 40 });
    d.step();
    for (let i = 0; i < 1500; i++) d.submit(`big${i}`, tokens(60, 100 + i), { maxNewTokens: 4 });
    d.submit("small", [7, 8, 9]);
    const isIn = () => d.step().forward.rows.some(({ requestId }) => requestId === "small");
    let rounds = 1;
    while (!isIn() && rounds < 40) rounds++;
    expect(rounds).toBeLessThan(12);
  });

  test("a round that has hashed enough pages leaves the others to the next ones", () => {
    const d = new Driver({ P: 1, pool: 4100, T: 2048, B: 8, groups: [F(1)] });
    const prefix = tokens(2000);
    d.submit("first", prefix);
    for (let i = 0; i < 2; i++) d.step();
    d.send({ kind: "finish", request: d.handle("first") });
    d.submit("runs", tokens(60, 5000), { maxNewTokens: 100 });
    d.step();
    for (let i = 0; i < 6; i++)
      d.submit(`long${i}`, [...prefix, ...tokens(2000, 10_000 * (i + 1))], { maxNewTokens: 50 });
    d.submit("small", [7, 8, 9]);
    const isIn = () => d.step().forward.rows.some(({ requestId }) => requestId === "small");
    expect(isIn()).toBe(false);
    let rounds = 2;
    while (!isIn() && rounds < 40) rounds++;
    expect(rounds).toBeLessThan(12);
  });
});
