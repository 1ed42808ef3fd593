/** From the command line to an exit code: help, version, and one line for whatever went wrong. */
import { describe, expect, test } from "bun:test";
import { dispatch } from "../../src/cli/dispatch";
import { commandHelp, generalHelp } from "../../src/cli/help";
import { fakeRuntime } from "../support/fake-runtime";
import { removeTemporaryDirectories } from "../support/temporary-directory";

removeTemporaryDirectories();

async function run(...args: string[]) {
  const runtime = fakeRuntime();
  const code = await dispatch(args, runtime);
  return { code, ...runtime.printed };
}

describe("help", () => {
  test("is printed where it is asked for, and where nothing is", async () => {
    const general = `${generalHelp("1.2.3")}\n`;
    for (const word of ["--help", "-h", "help"])
      expect(await run(word)).toEqual({ code: 0, out: general, err: "" });
    expect(await run()).toEqual({ code: 2, out: general, err: "" });
    expect(await run("serve", "--help")).toEqual({ code: 0, out: `${commandHelp("serve")}\n`, err: "" });
  });
});

describe("the version", () => {
  test("is one line", async () => {
    for (const word of ["--version", "version"])
      expect(await run(word)).toEqual({ code: 0, out: "granary 1.2.3\n", err: "" });
  });
});

describe("a mistake", () => {
  test("in usage is one line on standard error and exit code 2", async () => {
    const mistakes = [
      ["sevre"],
      ["toString"],
      ["serve", "--prot", "80"],
      ["serve", "--port", "x"],
      ["serve", "a word"],
      ["doctor", "a word"],
      ["run"],
      ["run", "two", "prompts"],
      ["run", "prompt"],
    ];
    for (const args of mistakes) {
      const { code, out, err } = await run(...args);
      expect([args, code, out]).toEqual([args, 2, ""]);
      expect(err).toMatch(/^granary: .+\n$/);
    }
  });

  test("in what was asked for is one line and exit code 1", async () => {
    const { code, out, err } = await run("run", "--model", "/absent", "prompt");
    expect([code, out]).toEqual([1, ""]);
    expect(err).toBe("granary: /absent: no such directory\n");
  });
});
