/** Texts that are far too long, noticed early. */
import { describe, expect, test } from "bun:test";
import { tokensBeyond } from "../../src/tokenizer/length-check";

/** A vocabulary whose words are tokens. */
const countWords = (text: string) => text.split(" ").filter((word) => word !== "").length;

describe("a text against a limit of tokens", () => {
  test("passes when it has no more", () => {
    expect(tokensBeyond(["one two three"], 3, countWords)).toBeUndefined();
    expect(tokensBeyond(["word ".repeat(50_000)], 50_000, countWords)).toBeUndefined();
  });

  test("is refused with a number that it surely has", () => {
    const beyond = tokensBeyond(["word ".repeat(50_000)], 1000, countWords) ?? 0;
    expect(beyond).toBeGreaterThan(1000);
    expect(beyond).toBeLessThanOrEqual(50_000);
  });

  test("is refused without being read to its end", () => {
    let read = 0;
    const text = "word ".repeat(1_000_000);
    tokensBeyond([text], 2000, (slice) => {
      read += slice.length;
      return countWords(slice);
    });
    expect(read).toBeLessThan(text.length / 50);
  });

  test("is never cut inside a character", () => {
    const text = "🧪".repeat(30_000);
    tokensBeyond([text], 1e9, (slice) => {
      expect(slice.isWellFormed()).toBe(true);
      return slice.length;
    });
  });

  test("of many parts counts them together", () => {
    const part = "word ".repeat(3000);
    expect(tokensBeyond([part, part, part], 5000, countWords)).toBeGreaterThan(5000);
  });
});
