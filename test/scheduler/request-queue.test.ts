/** The queue of requests and their tokens against plain lists. */
import { describe, expect, test } from "bun:test";
import { Int32BufferPool } from "../../src/cache/core/int32-buffer-pool";
import { Request } from "../../src/scheduler/request";
import { RequestQueue } from "../../src/scheduler/request-queue";
import { RequestTokens } from "../../src/scheduler/request-tokens";
import { Random } from "../sim/random";

describe("a queue of requests", () => {
  test("stays in submission order however they come and go", () => {
    const random = new Random(9);
    const queue = new RequestQueue();
    const requests = Array.from(
      { length: 30 },
      (_, i) => new Request(i + 1, { requestId: `r${i}`, tokens: Int32Array.of(1) }, 1),
    );
    const inside = new Set<Request>();
    for (let step = 0; step < 2000; step++) {
      const request = random.pick(requests);
      if (inside.delete(request)) queue.remove(request);
      else {
        queue.add(request);
        inside.add(request);
      }
      const walked: number[] = [];
      for (let at = queue.first; at !== undefined; at = at.next) walked.push(at.handle);
      expect(walked).toEqual([...inside].map((member) => member.handle).sort((a, b) => a - b));
      expect(queue.size).toBe(inside.size);
    }
  });
});

describe("a request's tokens", () => {
  test("read as one text over prompt and generation, cut and rebased", () => {
    const buffers = new Int32BufferPool();
    const prompt = Int32Array.of(1, 2, 3);
    const tokens = new RequestTokens(prompt);
    for (let token = 4; token <= 200; token++) tokens.append(token, buffers);
    const read = (begin: number, count: number) => {
      const target = new Int32Array(count);
      tokens.copyTokens(begin, count, target, 0);
      return Array.from(target);
    };
    expect([tokens.size, tokens.at(2), tokens.at(3), read(1, 4)]).toEqual([200, 3, 4, [2, 3, 4, 5]]);
    expect(tokens.window).toBe(prompt);
    tokens.truncate(10);
    expect(tokens.size).toBe(10);
    tokens.truncate(1);
    expect(tokens.size).toBe(3);
    tokens.append(4, buffers);
    tokens.rebase(buffers);
    expect([tokens.size, Array.from(tokens.window)]).toEqual([4, [1, 2, 3, 4]]);
    expect(Array.from(prompt)).toEqual([1, 2, 3]);
  });
});
