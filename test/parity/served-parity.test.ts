/**
 * The reference architectures through the whole house: a
 * server process, HTTP, the cache, and every chunk budget.
 */
import { describe, expect, test } from "bun:test";
import { complete } from "../support/completion-client";
import { worstDifference } from "../support/log-softmax";
import { loadReferenceCase, type PromptName } from "../support/reference-case";
import { startReferenceServer } from "../support/server-process";

const prefixGranularity = 64;
const tolerance = 2e-3;

/** Prefix tokens that a prompt may take from the cache: whole pages, and at least one token is computed. */
const reusable = (tokens: number) => Math.floor((tokens - 1) / prefixGranularity) * prefixGranularity;

function sharedPrefix(a: Int32Array, b: Int32Array): number {
  const differs = a.findIndex((token, i) => token !== b[i]);
  return differs < 0 ? a.length : differs;
}

for (const name of ["llama", "qwen3", "qwen3-moe", "mistral-swa"]) {
  describe(`${name} in float32 on the CPU`, () => {
    const reference = loadReferenceCase(name);
    const { vocabSize } = reference;

    for (const budget of [16, 64, 100, 304]) {
      test(`answers like the reference and repeats itself bit for bit, ${budget} tokens a step`, async () => {
        await using server = await startReferenceServer(name, [
          ...["--max-logprobs", "-1", "--max-num-batched-tokens", String(budget), "--debug-checks"],
        ]);
        const prompt = reference.prompt("a");
        const ask = (options: Parameters<typeof complete>[4]) =>
          complete(server.url, name, prompt, vocabSize, { wantsLogprobs: true, ...options });
        const cold = await ask({ wantsPromptLogprobs: true });
        const rows = reference.rows("a");
        expect(worstDifference(cold.promptLogprobs, rows, reference.logits("a"), vocabSize)).toBeLessThan(
          tolerance,
        );
        expect(cold.tokens).toEqual([...reference.greedyA]);
        expect(cold.cachedTokens).toBe(0);

        const warm = await ask({});
        expect(warm.cachedTokens).toBe(reusable(prompt.length));
        expect(warm.logprobs).toEqual(cold.logprobs);
        expect(warm.tokens).toEqual(cold.tokens);

        const again = await ask({ wantsPromptLogprobs: true });
        expect(again.cachedTokens).toBe(0);
        expect(again.promptLogprobs).toEqual(cold.promptLogprobs);
        expect(again.logprobs).toEqual(cold.logprobs);
      });
    }

    test("gives three prompts in one batch the answers that each gets alone", async () => {
      await using server = await startReferenceServer(name, ["--max-logprobs", "-1", "--debug-checks"]);
      const prompts: readonly PromptName[] = ["a", "b", "c"];
      const together = await Promise.all(
        prompts.map((prompt) =>
          complete(server.url, name, reference.prompt(prompt), vocabSize, {
            wantsLogprobs: true,
            wantsPromptLogprobs: true,
          }),
        ),
      );
      for (const [index, prompt] of prompts.entries()) {
        const result = together[index] as (typeof together)[number];
        const difference = worstDifference(
          result.promptLogprobs,
          reference.rows(prompt),
          reference.logits(prompt),
          vocabSize,
        );
        expect(difference).toBeLessThan(tolerance);
        const alone = await complete(server.url, name, reference.prompt(prompt), vocabSize, {
          wantsLogprobs: true,
        });
        expect(alone.logprobs).toEqual(result.logprobs);
        expect(alone.cachedTokens).toBe(reusable(reference.prompt(prompt).length));
      }
      expect(together[0]?.tokens).toEqual([...reference.greedyA]);
    });

    test("finds the part of a prompt that another prompt has computed", async () => {
      await using server = await startReferenceServer(name);
      const [a, b] = [reference.prompt("a"), reference.prompt("b")];
      await complete(server.url, name, a, vocabSize);
      const second = await complete(server.url, name, b, vocabSize);
      const shared = Math.floor(sharedPrefix(a, b) / prefixGranularity) * prefixGranularity;
      // A window that was computed in one step is kept at its end alone, where the two prompts differ.
      expect(second.cachedTokens).toBe(name === "mistral-swa" ? 0 : shared);
    });
  });
}
