/** Long texts are tokenized by a Worker, with the same result and without holding up the caller's thread. */
import { afterAll, describe, expect, test } from "bun:test";
import { maxPendingTokenizations } from "../../src/limits";
import { byteLevel } from "./tokenizer-builder";

const workerUrl = new URL("../../src/tokenizer/tokenizer-worker.ts", import.meta.url);
const inWorker = byteLevel({}, { workerUrl });
const inline = byteLevel();
const longText = "Grain for the granary, naïve 漢字. ".repeat(6000);

afterAll(() => inWorker.close());

describe("a Worker that cannot start", () => {
  test("fails the texts that wait for it, and the next text tries again", async () => {
    const broken = byteLevel({}, { workerUrl: new URL("./no-such-worker.ts", import.meta.url) });
    for (const _ of [1, 2]) {
      await expect(broken.encodePrompt(longText)).rejects.toMatchObject({ code: "tokenizer_failed" });
    }
    expect(await broken.encodePrompt("short")).toHaveLength(5);
    broken.close();
  });

  test("has at most so many texts waiting", () => {
    const crowded = byteLevel({}, { workerUrl });
    const waits = Array.from({ length: maxPendingTokenizations }, () => crowded.encodePrompt(longText));
    const closing = Promise.allSettled(waits);
    const refused = expect(crowded.encodePrompt(longText)).rejects.toMatchObject({
      code: "tokenizer_overloaded",
    });
    crowded.close();
    return Promise.all([closing, refused]);
  });
});

describe("a text of 200,000 characters", () => {
  test("gives the same ids in the Worker as on the caller's thread", async () => {
    expect(await inWorker.encodePrompt(longText)).toEqual(await inline.encodePrompt(longText));
  });

  test("gives the same ids in a conversation", async () => {
    const chat = {
      messages: [{ role: "user", content: `<|im_end|>${longText}` }],
      addGenerationPrompt: true,
    };
    expect(await inWorker.encodeChat(chat)).toEqual(await inline.encodeChat(chat));
  });

  test("does not hold up the caller's thread", async () => {
    let longestGapMs = 0;
    let lastMs = performance.now();
    const timer = setInterval(() => {
      longestGapMs = Math.max(longestGapMs, performance.now() - lastMs);
      lastMs = performance.now();
    }, 1);
    await Promise.all([1, 2, 3].map(() => inWorker.encodePrompt(longText)));
    clearInterval(timer);
    const inlineBeginMs = performance.now();
    await inline.encodePrompt(longText.repeat(3));
    expect(longestGapMs).toBeLessThan((performance.now() - inlineBeginMs) / 2);
  });
});
