/** Live choices: registered together, started one by one, forgotten when they end. */
import { describe, expect, test } from "bun:test";
import { ChoiceTable } from "../../src/engine/choice-table";
import { engineRequest } from "../support/engine-request";

function newTable(): ChoiceTable {
  let next = 100;
  return new ChoiceTable([2], () => next++);
}

const indices = (choices: readonly { readonly index: number }[]) => choices.map(({ index }) => index);

describe("a request of several choices", () => {
  test("starts its first one, and the others when they are released, once", () => {
    const table = newTable();
    expect(indices(table.add(engineRequest({ id: 8, numChoices: 3 })))).toEqual([0]);
    expect(indices(table.release(8))).toEqual([1, 2]);
    expect(table.release(8)).toEqual([]);
    expect(table.release(99)).toEqual([]);
  });

  test("shares one seed among them: the given one, else one drawn for the request", () => {
    const table = newTable();
    table.add(engineRequest({ id: 1, numChoices: 2 }));
    table.add(engineRequest({ id: 2, sampling: { seed: { low: 5, high: 6 } } }));
    const seedOf = (id: number, index: number) => {
      const sampling = table.find(id, index)?.sampling;
      return [sampling?.seedLow, sampling?.seedHigh];
    };
    expect([seedOf(1, 0), seedOf(1, 1)]).toEqual([
      [100, 101],
      [100, 101],
    ]);
    expect(seedOf(2, 0)).toEqual([5, 6]);
  });

  test("lives until its last choice is removed", () => {
    const table = newTable();
    const [first] = table.add(engineRequest({ id: 8, numChoices: 2 }));
    if (first === undefined) throw new Error("no choice was started");
    table.remove(first);
    expect([table.size, table.find(8, 0), indices(table.release(8))]).toEqual([1, undefined, [1]]);
    const second = table.find(8, 1);
    if (second === undefined) throw new Error("the second choice is gone");
    table.remove(second);
    expect([table.size, table.find(8, 1)]).toEqual([0, undefined]);
    table.remove(second);
    expect(table.size).toBe(0);
  });

  test("never starts a choice that was removed while it waited", () => {
    const table = newTable();
    table.add(engineRequest({ id: 8, numChoices: 3 }));
    const waiting = table.find(8, 1);
    if (waiting !== undefined) table.remove(waiting);
    expect(indices(table.release(8))).toEqual([2]);
  });

  test("is removed whole, with all that was left of it", () => {
    const table = newTable();
    const [first] = table.add(engineRequest({ id: 8, numChoices: 3 }));
    if (first !== undefined) table.remove(first);
    expect(indices(table.removeAll(8))).toEqual([1, 2]);
    expect([table.size, table.removeAll(8), table.release(8)]).toEqual([0, [], []]);
  });
});

describe("handles", () => {
  test("lead to the choice until it is removed", () => {
    const table = newTable();
    const [choice] = table.add(engineRequest({ id: 8 }));
    if (choice === undefined) throw new Error("no choice was started");
    table.bind(choice, 41);
    expect([choice.handle, table.byHandle(41), table.byHandle(42)]).toEqual([41, choice, undefined]);
    table.remove(choice);
    expect(table.byHandle(41)).toBeUndefined();
  });
});

test("one id given twice is a broken promise", () => {
  const table = newTable();
  table.add(engineRequest({ id: 8 }));
  expect(() => table.add(engineRequest({ id: 8 }))).toThrow("request 8 was submitted twice");
});
