/** How a benchmark tells of the requests that failed. */
import { describe, expect, test } from "bun:test";
import { describeFailures } from "../../../src/cli/bench/measurement";

describe("failures", () => {
  test("are told once a reason, with how many requests it took", () => {
    expect(describeFailures(["too long", "reset", "too long"])).toBe(
      "granary: 2 requests failed: too long\ngranary: 1 request failed: reset\n",
    );
    expect(describeFailures([])).toBe("");
  });

  test("with a reason each do not flood the screen", () => {
    const text = describeFailures(Array.from({ length: 100 }, (_, i) => `reason ${i}`));
    expect(text.split("\n")).toHaveLength(7);
    expect(text).toEndWith("granary: requests failed for 95 more reasons\n");
  });
});
