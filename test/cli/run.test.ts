/** One prompt answered on standard output. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { dispatch } from "../../src/cli/dispatch";
import { fakeRuntime } from "../support/fake-runtime";
import { removeTemporaryDirectories } from "../support/temporary-directory";

removeTemporaryDirectories();

const directory = join(import.meta.dir, "../fixtures/reference/llama");
const model = ["--model", directory, "--load-format", "dummy", "--device", "cpu", "--num-lcm-blocks", "8"];
const greedy = ["--temperature", "0", "--max-num-seqs", "1", "--max-model-len", "200"];

async function run(...args: string[]) {
  const runtime = fakeRuntime();
  const code = await dispatch(["run", ...model, ...greedy, ...args], runtime);
  return { code, ...runtime.printed };
}

describe("a prompt", () => {
  test("is answered with as many tokens as were asked for, the same each time", async () => {
    const first = await run("--max-tokens", "6", "hello");
    expect([first.code, first.err]).toEqual([0, ""]);
    expect(first.out).toEndWith("\n");
    expect(first.out.length).toBeGreaterThan(1);
    expect(await run("--max-tokens", "6", "hello")).toEqual(first);
  });

  test("as raw text is another prompt than as a message", async () => {
    const [raw, chat] = [
      await run("--raw", "--max-tokens", "12", "hello"),
      await run("--max-tokens", "12", "hello"),
    ];
    expect(raw.out).not.toBe(chat.out);
  });

  test("longer than the context is refused in one line", async () => {
    const { code, out, err } = await run("x".repeat(300));
    expect([code, out]).toEqual([1, ""]);
    expect(err).toMatch(/^granary: the prompt has 3\d\d of 200 tokens\n$/);
  });
});
