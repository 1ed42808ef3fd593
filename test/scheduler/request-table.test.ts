/** The table of live requests against a Map. */
import { describe, expect, test } from "bun:test";
import { Request } from "../../src/scheduler/request";
import { RequestTable } from "../../src/scheduler/request-table";
import { Random } from "../support/random";

describe("a table of requests", () => {
  test("finds by id and by handle what a map finds, while it grows and empties again", () => {
    const random = new Random(21);
    const byId = new RequestTable((request) => request.id);
    const byHandle = new RequestTable((request) => request.handle);
    const naive = new Map<string, Request>();
    let handle = 0;
    for (let step = 0; step < 20_000; step++) {
      const isGrowing = Math.floor(step / 2500) % 2 === 0;
      if (naive.size === 0 || random.isHeads(isGrowing ? 0.6 : 0.4)) {
        const request = new Request(++handle, { requestId: `${handle}/0`, tokens: Int32Array.of(1) }, 1);
        byId.add(request);
        byHandle.add(request);
        naive.set(request.id, request);
      } else {
        const request = random.pick([...naive.values()]);
        byId.remove(request);
        byHandle.remove(request);
        naive.delete(request.id);
      }
      const asked = random.integer(Math.max(1, handle - 700), handle + 3);
      expect(byId.get(`${asked}/0`)).toBe(naive.get(`${asked}/0`));
      expect(byHandle.get(asked)).toBe(naive.get(`${asked}/0`));
      expect(byId.size).toBe(naive.size);
    }
    expect([...byId.values()].map((request) => request.handle).sort((a, b) => a - b)).toEqual(
      [...naive.values()].map((request) => request.handle),
    );
  });
});

const requestOf = (handle: number, requestId = "") =>
  new Request(handle, { requestId, tokens: Int32Array.of(1) }, 1);

describe("the way a search walks", () => {
  const steps = { "one after another": 1, "every other": 2, "one in 64": 64, "one in 4096": 4096 };
  for (const [name, step] of Object.entries(steps)) {
    test(`is short however many handles wait, ${name}`, () => {
      const table = new RequestTable((request) => request.handle);
      for (let i = 1; i <= 16_383; i++) table.add(requestOf(i * step));
      expect(table.longestRun).toBeLessThan(160);
    });
  }

  const ids = {
    "count up": (i: number) => `${i}/0`,
    "count up by siblings": (i: number) => `${i >> 3}/${i & 7}`,
    "are padded": (i: number) => `c${String(i).padStart(6, "0")}.t1`,
  };
  for (const [name, idOf] of Object.entries(ids)) {
    test(`is short however many requests wait whose ids ${name}`, () => {
      const table = new RequestTable((request) => request.id);
      for (let i = 1; i <= 16_383; i++) table.add(requestOf(i, idOf(i)));
      expect(table.longestRun).toBeLessThan(160);
    });
  }
});

describe("the room of a table", () => {
  test("follows a burst down again, and stands still while few come and go", () => {
    const table = new RequestTable((request) => request.handle);
    const atFirst = table.capacity;
    const burst = Array.from({ length: 20_000 }, (_, i) => requestOf(i + 1));
    for (const request of burst) table.add(request);
    expect(table.capacity).toBeGreaterThanOrEqual(20_000);
    for (const request of burst.slice(100)) table.remove(request);
    expect(table.capacity).toBeLessThanOrEqual(8 * 100);
    expect(burst.every((request, i) => table.get(request.handle) === (i < 100 ? request : undefined))).toBe(
      true,
    );
    const small = table.capacity;
    for (let round = 0; round < 50; round++) {
      table.remove(burst[round]);
      expect(table.capacity).toBe(small);
      table.add(burst[round]);
      expect(table.capacity).toBe(small);
    }
    for (const request of burst.slice(0, 100)) table.remove(request);
    expect(table.capacity).toBe(atFirst);
    expect(table.size).toBe(0);
  });
});
