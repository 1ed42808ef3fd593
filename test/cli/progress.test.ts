/** Loading progress and log lines on standard error. */
import { describe, expect, test } from "bun:test";
import { lineLog } from "../../src/cli/line-log";
import { ProgressLine } from "../../src/cli/progress";
import { progressIntervalMs } from "../../src/limits";
import { fakeRuntime } from "../support/fake-runtime";
import { removeTemporaryDirectories } from "../support/temporary-directory";

removeTemporaryDirectories();

/** Updates at these times, then closes; what was printed. */
function progress(isTerminal: boolean, timesMs: readonly number[]): string {
  const runtime = fakeRuntime({ isTerminal });
  const line = new ProgressLine(runtime);
  timesMs.forEach((timeMs, i) => {
    runtime.clock.nowMs = timeMs;
    line.update(`tensor ${i}`, i / 10);
  });
  line.close();
  line.close();
  return runtime.printed.err;
}

describe("progress", () => {
  test("of a quick load is silent", () => {
    expect(progress(false, [0, progressIntervalMs - 1])).toBe("");
    expect(progress(true, [0, progressIntervalMs - 1])).toBe("");
  });

  test("is a line now and then where nobody can overwrite one", () => {
    expect(progress(false, [0, 1000, 1500, 2100])).toBe(
      "loading 10 %, 1 s: tensor 1\nloading 30 %, 2 s: tensor 3\n",
    );
  });

  test("is one line that moves on a terminal, and ends", () => {
    expect(progress(true, [1000, 2000])).toBe(
      "\r\x1b[Kloading 0 %, 1 s: tensor 0\r\x1b[Kloading 10 %, 2 s: tensor 1\n",
    );
  });
});

describe("log lines", () => {
  test("carry their level and their fields", () => {
    const runtime = fakeRuntime();
    const log = lineLog(runtime);
    log.info("started");
    log.warn("slow", { ms: 12 });
    log.error("failed", { reason: 'a "b"', id: 3 });
    expect(runtime.printed.err).toBe(
      'info: started\nwarning: slow ms=12\nerror: failed reason="a \\"b\\"" id=3\n',
    );
  });
});
