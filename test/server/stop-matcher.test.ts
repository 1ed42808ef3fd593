/** Stop strings across every way of cutting a text, against a twin that has the whole text before it. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { StopMatcher } from "../../src/server/generation/stop-matcher";

interface Outcome {
  readonly text: string;
  readonly stopString: string | undefined;
}

function matchInParts(parts: readonly string[], stops: readonly string[], includeMatch: boolean): Outcome {
  const matcher = new StopMatcher(stops, includeMatch);
  let text = "";
  for (const part of parts) {
    const result = matcher.push(part);
    if (typeof result !== "string") return { text: text + result.text, stopString: result.stopString };
    text += result;
  }
  return { text: text + matcher.flush(), stopString: undefined };
}

/** Looks at every end in turn, and there at the longest string first. */
function matchTwin(whole: string, stops: readonly string[], includeMatch: boolean): Outcome {
  const longestFirst = [...stops].sort((a, b) => b.length - a.length);
  for (let end = 1; end <= whole.length; end++) {
    const stop = longestFirst.find((candidate) => whole.slice(0, end).endsWith(candidate));
    if (stop === undefined) continue;
    return { text: whole.slice(0, includeMatch ? end : end - stop.length), stopString: stop };
  }
  return { text: whole, stopString: undefined };
}

describe("a stop string", () => {
  test("is found across parts and left out", () => {
    expect(matchInParts(["some te", "xt EN", "D more"], ["END"], false)).toEqual({
      text: "some text ",
      stopString: "END",
    });
  });

  test("stays in the text when that is asked for", () => {
    expect(matchInParts(["a E", "ND"], ["END"], true)).toEqual({ text: "a END", stopString: "END" });
  });

  test("holds back only what may become it", () => {
    const matcher = new StopMatcher(["<stop>"], false);
    expect(matcher.push("text <st")).toBe("text ");
    expect(matcher.push("ill")).toBe("<still");
    expect(matcher.push(" <")).toBe(" ");
    expect(matcher.flush()).toBe("<");
  });

  test("that ends first wins, of two with one end the longer", () => {
    expect(matchInParts(["xabc"], ["bc", "abc", "x"], false)).toEqual({ text: "", stopString: "x" });
    expect(matchInParts(["xabc"], ["bc", "abc"], false)).toEqual({ text: "x", stopString: "abc" });
  });

  test("may begin before the shortest length but must end behind it", () => {
    const matcher = new StopMatcher(["ab"], false);
    expect(matcher.pushUnmatched("xaba")).toBe("xab");
    expect(matcher.push("b")).toEqual({ text: "", stopString: "ab" });
    const other = new StopMatcher(["a", "ab"], false);
    expect(other.pushUnmatched("xa")).toBe("x");
    expect(other.push("x")).toBe("ax");
  });

  test("is the same however the text is cut", () => {
    const letters = fc.constantFrom("a", "b", "ab", "c", "aab");
    fc.assert(
      fc.property(
        fc.array(letters, { maxLength: 12 }),
        fc.array(fc.constantFrom("ab", "ba", "aab", "abc", "cab", "bb", "a"), { minLength: 1, maxLength: 4 }),
        fc.boolean(),
        (parts, stops, includeMatch) => {
          expect(matchInParts(parts, stops, includeMatch)).toEqual(
            matchTwin(parts.join(""), stops, includeMatch),
          );
        },
      ),
      { numRuns: 3000 },
    );
  });
});
