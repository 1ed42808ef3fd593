/** Events that arrive in any pieces, with any line ends. */
import { describe, expect, test } from "bun:test";
import { eventData } from "../../../src/cli/bench/server-sent-events";

async function dataOf(text: string, pieceLength: number): Promise<readonly string[]> {
  const bytes = new TextEncoder().encode(text);
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += pieceLength) pieces.push(bytes.slice(at, at + pieceLength));
  return Array.fromAsync(eventData(pieces));
}

describe("the data of events", () => {
  test("is the same however the body is cut and its lines end", async () => {
    const lines = [": alive", "", "event: x", "data: é1", "", "data:2", "data: 3", "", "", "data: 4", "", ""];
    for (const lineEnd of ["\n", "\r\n", "\r"]) {
      // Of a lone return at the very end nobody knows whether it was half of a pair.
      const text = lines.join(lineEnd) + (lineEnd === "\r" ? ": end" : "");
      for (const pieceLength of [1, 2, 3, 7, 1000]) {
        expect(await dataOf(text, pieceLength)).toEqual(["é1", "2\n3", "4"]);
      }
    }
  });
});
