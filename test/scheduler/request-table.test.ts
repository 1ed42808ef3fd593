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
