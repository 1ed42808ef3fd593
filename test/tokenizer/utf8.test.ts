/** The unfinished end of UTF-8, against a twin that asks TextDecoder. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { incompleteTailLength } from "../../src/tokenizer/utf8";

/** A tail is unfinished when some continuation makes a character of it that its bytes alone do not make. */
function incompleteTailLengthTwin(bytes: Uint8Array): number {
  const decode = (part: Uint8Array) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(part);
  for (let length = Math.min(3, bytes.length); length >= 1; length--) {
    const tail = bytes.slice(bytes.length - length);
    if (tail[0] < 0xc0) continue;
    for (let missing = 1; length + missing <= 4; missing++) {
      const completed = Uint8Array.from([...tail, ...new Array(missing).fill(0x80)]);
      const alternative = Uint8Array.from([...tail, ...new Array(missing).fill(0xbf)]);
      for (const whole of [completed, alternative]) {
        const text = decode(whole);
        if ([...text].length === 1 && text !== "\ufffd") return length;
      }
    }
  }
  return 0;
}

describe("the unfinished end of a byte sequence", () => {
  test("is empty behind whole characters", () => {
    for (const text of ["", "a", "é", "漢", "🧪", "naïve 漢字 🧪🏽"]) {
      expect(incompleteTailLength(new TextEncoder().encode(text))).toBe(0);
    }
  });

  test("is every proper beginning of a character", () => {
    for (const character of ["é", "漢", "\u{10ffff}", "\ud7ff", "\u0800", "🧪"]) {
      const bytes = new TextEncoder().encode(`x${character}`);
      for (let end = 2; end < bytes.length; end++)
        expect(incompleteTailLength(bytes.slice(0, end))).toBe(end - 1);
    }
  });

  test("is not a beginning that no character has", () => {
    for (const bytes of [
      [0xc0],
      [0xc1],
      [0xf5],
      [0xe0, 0x80],
      [0xed, 0xa0],
      [0xf0, 0x80],
      [0xf4, 0x90],
      [0x80],
    ]) {
      expect(incompleteTailLength(Uint8Array.from(bytes))).toBe(0);
    }
  });

  test("agrees with its twin on any bytes", () => {
    const leads = fc.constantFrom(
      0x41,
      0x80,
      0x90,
      0xa0,
      0xbf,
      0xc0,
      0xc2,
      0xdf,
      0xe0,
      0xed,
      0xef,
      0xf0,
      0xf4,
      0xf5,
      0xff,
    );
    fc.assert(
      fc.property(fc.array(leads, { maxLength: 6 }), (list) => {
        const bytes = Uint8Array.from(list);
        expect(incompleteTailLength(bytes)).toBe(incompleteTailLengthTwin(bytes));
      }),
      { numRuns: 2000 },
    );
  });
});
