/** The demo model through the whole house: what the reference computed for it comes out over HTTP. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import vectors from "../fixtures/demo/vectors.json";
import { postJson, type ServerProcess, startServer } from "../support/server-process";

const model = join(import.meta.dir, "../../src/demo/model");
let server: ServerProcess;

beforeAll(async () => {
  server = await startServer(["--model", model, "--device", "cpu", "--served-model-name", "demo"]);
});

afterAll(async () => {
  await server?.end("SIGKILL");
});

interface Answer {
  readonly choices: readonly { readonly text: string; readonly token_ids: readonly number[] }[];
  readonly usage: {
    readonly prompt_tokens: number;
    readonly prompt_tokens_details: { readonly cached_tokens: number };
  };
}

/** A near tie may fall either way in other arithmetic; up to the first one the tokens must agree. */
const nearTie = 0.01;

describe("the demo model", () => {
  test("continues the reference prompts with the reference tokens", async () => {
    expect(vectors.greedy.length).toBeGreaterThan(0);
    for (const { prompt, promptIds, ids, text, margins } of vectors.greedy) {
      const answer = await postJson<Answer>(`${server.url}/v1/completions`, {
        prompt,
        max_tokens: ids.length,
        temperature: 0,
        return_token_ids: true,
      });
      const tie = margins.findIndex((margin) => margin < nearTie);
      const numSure = tie < 0 ? ids.length : tie;
      expect(answer.usage.prompt_tokens).toBe(promptIds.length);
      expect(answer.choices[0]?.token_ids.slice(0, numSure)).toEqual(ids.slice(0, numSure));
      if (tie < 0) expect(answer.choices[0]?.text).toBe(text);
    }
  });

  test("answers a conversation with text, and sooner the second time", async () => {
    const content = "Tell me a story about a fox who finds an old granary by the river. ".repeat(6);
    const ask = () =>
      postJson<{ choices: { message: { content: string } }[]; usage: Answer["usage"] }>(
        `${server.url}/v1/chat/completions`,
        { messages: [{ role: "user", content }], max_tokens: 60, temperature: 0 },
      );
    const first = await ask();
    const second = await ask();
    const text = first.choices[0]?.message.content ?? "";
    expect(text.split(/\s+/).filter((word) => /^[A-Za-z']+[.,!?]?$/.test(word)).length).toBeGreaterThan(20);
    expect(second.choices[0]?.message.content).toBe(text);
    expect(first.usage.prompt_tokens_details.cached_tokens).toBe(0);
    expect(second.usage.prompt_tokens_details.cached_tokens).toBeGreaterThan(0);
  });
});
