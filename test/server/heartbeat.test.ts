/**
 * Silent streams say that they are alive: first after five seconds, then every ten, and never inside an
 * event.
 */
import { describe, expect, test } from "bun:test";
import { firstKeepAliveMs, idleTimeoutSeconds, nextKeepAliveMs } from "../../src/limits";
import { ApiError } from "../../src/server/http/api-error";
import { Heartbeat } from "../../src/server/stream/heartbeat";
import { SseStream } from "../../src/server/stream/sse-stream";

function streamUnderTest() {
  let nowMs = 0;
  const closings: string[] = [];
  const heartbeat = new Heartbeat({ monotonicMs: () => nowMs });
  const stream = new SseStream({ heartbeat, onClose: () => closings.push("closed") });
  return {
    stream,
    closings,
    /** Lets time pass in the steps of the timer. */
    pass(seconds: number) {
      for (let step = 0; step < seconds * 2; step++) {
        nowMs += 500;
        heartbeat.tick();
      }
    },
  };
}

describe("a silent stream", () => {
  test("opens with a comment after five seconds and sends one every ten", async () => {
    const { stream, pass } = streamUnderTest();
    pass(4.5);
    pass(0.5);
    const response = await stream.response;
    pass(20);
    stream.end();
    expect(await response.text()).toBe(`${": keep-alive\n\n".repeat(3)}data: [DONE]\n\n`);
  });

  test("starts counting again with every event", async () => {
    const { stream, pass } = streamUnderTest();
    stream.write("data: 1\n\n");
    for (let event = 0; event < 5; event++) {
      pass(4.5);
      stream.write("data: 2\n\n");
    }
    stream.end("");
    expect(await (await stream.response).text()).toBe(`data: 1\n\n${"data: 2\n\n".repeat(5)}`);
  });

  test("is kept alive well within the idle limit", () => {
    expect(Math.max(firstKeepAliveMs, nextKeepAliveMs) * 2).toBeLessThan(idleTimeoutSeconds * 1000);
  });
});

describe("a stream", () => {
  test("that fails before its first byte is an error with a status", async () => {
    const { stream, closings } = streamUnderTest();
    stream.fail(new ApiError(500, "broken"));
    await expect(stream.response).rejects.toMatchObject({ httpStatus: 500 });
    expect(closings).toEqual(["closed"]);
  });

  test("is closed once, whatever comes after", async () => {
    const { stream, closings, pass } = streamUnderTest();
    stream.write("data: 1\n\n");
    const response = await stream.response;
    stream.end();
    stream.end();
    stream.fail(new ApiError(500, "late"));
    stream.cancel();
    stream.write("data: late\n\n");
    pass(60);
    expect(await response.text()).toBe("data: 1\n\ndata: [DONE]\n\n");
    expect(closings).toEqual(["closed"]);
  });

  test("is closed when its reader gives it up", async () => {
    const { stream, closings } = streamUnderTest();
    stream.write("data: 1\n\n");
    await (await stream.response).body?.cancel();
    expect(closings).toEqual(["closed"]);
    expect(stream.isClosed).toBe(true);
  });
});
