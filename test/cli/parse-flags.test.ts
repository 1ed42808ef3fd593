/** Arguments and environment become values: precedence, spelling, and one line for each mistake. */
import { describe, expect, test } from "bun:test";
import type { CommandName } from "../../src/cli/flag-types";
import { allFlags } from "../../src/cli/flags";
import { type Environment, parseCommand } from "../../src/cli/parse-flags";
import { expectError } from "../support/expect-error";

const parse = (args: readonly string[], environment: Environment = {}, command: CommandName = "serve") =>
  parseCommand(command, args, environment);

function refused(args: readonly string[], environment: Environment, ...texts: string[]): void {
  const message = expectError(() => parse(args, environment), "usage", ...texts);
  expect(message).not.toContain("\n");
}

describe("a value", () => {
  test("is the flag's, else the environment's, else the default", () => {
    const environment = { GRANARY_PORT: "9000" };
    expect(parse(["--port", "9100"], environment).flags.number("port")).toBe(9100);
    expect(parse([], environment).flags.number("port")).toBe(9000);
    expect(parse([], {}).flags.number("port")).toBe(8000);
    expect(parse([], { GRANARY_PORT: "" }).flags.number("port")).toBe(8000);
    expect(parse([], {}).flags.number("max-model-len")).toBeUndefined();
  });

  test("may follow as the next word or after an equals sign, with more equals signs in it", () => {
    expect(parse(["--model", "a b"]).flags.text("model")).toBe("a b");
    expect(parse(["--model=a=b"]).flags.text("model")).toBe("a=b");
    expect(parse(["--max-logprobs", "-1"]).flags.number("max-logprobs")).toBe(-1);
  });

  test("given twice is the last one", () => {
    expect(parse(["--port", "1", "--port", "2"]).flags.number("port")).toBe(2);
  });
});

describe("a switch", () => {
  const isOn = (args: readonly string[], environment: Environment = {}) =>
    parse(args, environment).flags.isSet("no-enable-prefix-caching");

  test("is on by name alone, and off or on when it says so", () => {
    const name = "--no-enable-prefix-caching";
    expect([isOn([]), isOn([name]), isOn([`${name}=true`]), isOn([`${name}=1`])]).toEqual([
      false,
      true,
      true,
      true,
    ]);
    expect([isOn([`${name}=false`]), isOn([`${name}=0`])]).toEqual([false, false]);
    const twin = (value: string) => ({ GRANARY_NO_ENABLE_PREFIX_CACHING: value });
    expect([isOn([], twin("1")), isOn([], twin("0")), isOn([`${name}=0`], twin("1"))]).toEqual([
      true,
      false,
      false,
    ]);
    refused([`${name}=yes`], {}, "--no-enable-prefix-caching", "true or false", "'yes'");
    refused([], twin("on"), "GRANARY_NO_ENABLE_PREFIX_CACHING", "'on'");
  });

  test("takes no word that follows", () => {
    const { flags, positionals } = parse(["--raw", "a prompt"], {}, "run");
    expect([flags.isSet("raw"), positionals]).toEqual([true, ["a prompt"]]);
  });
});

describe("a list", () => {
  test("grows with every mention, and replaces the environment's", () => {
    const environment = { GRANARY_API_KEY: "x,y" };
    expect(parse([], environment).flags.list("api-key")).toEqual(["x", "y"]);
    expect(parse(["--api-key", "a", "--api-key=b,c"], environment).flags.list("api-key")).toEqual([
      "a",
      "b,c",
    ]);
    expect(parse([]).flags.list("api-key")).toEqual([]);
  });

  test("has no empty entry: an empty key would guard nothing", () => {
    refused(["--api-key", ""], {}, "--api-key", "empty");
    refused(["--api-key="], {}, "--api-key", "empty");
    for (const value of [",", "a,", ",a", "a,,b"])
      refused([], { GRANARY_API_KEY: value }, "GRANARY_API_KEY", "empty");
  });
});

describe("a text", () => {
  test("is never empty: an empty address would mean every one of the machine's", () => {
    for (const { name, kind, commands } of allFlags) {
      if (kind !== "text" || !commands.includes("serve")) continue;
      refused([`--${name}`, ""], {}, `--${name}`, "empty");
      refused([`--${name}=`], {}, `--${name}`, "empty");
    }
  });
});

describe("numbers", () => {
  test("are refused with the place they came from and their bound", () => {
    refused(["--port", "80x"], {}, "--port", "number", "'80x'");
    refused(["--port", ""], {}, "--port", "number");
    refused(["--port", "80.5"], {}, "--port", "whole number");
    refused(["--port", "65536"], {}, "--port", "at most 65535");
    refused(["--port", "-1"], {}, "--port", "at least 0");
    refused([], { GRANARY_PORT: "NaN" }, "GRANARY_PORT", "number");
    refused(["--seed", "9007199254740993"], {}, "--seed", "whole number");
    refused(["--gpu-memory-utilization", "1.1"], {}, "at most 1");
    expect(parse(["--gpu-memory-utilization", "0.5"]).flags.number("gpu-memory-utilization")).toBe(0.5);
  });
});

describe("choices", () => {
  test("are named when a word is none of them", () => {
    refused(["--dtype", "fp4"], {}, "--dtype", "auto, float32, bfloat16", "'fp4'");
    refused([], { GRANARY_DEVICE: "tpu" }, "GRANARY_DEVICE", "auto", "cuda", "cpu", "'tpu'");
  });
});

describe("what is not a flag of the command", () => {
  test("is refused with the way to the list", () => {
    refused(["--prot", "80"], {}, "--prot", "granary serve --help");
    expectError(() => parse(["--port", "80"], {}, "run"), "usage", "--port", "granary run --help");
    refused(["--port"], {}, "--port needs a value");
  });

  test("in the environment is not looked at", () => {
    expect(() => parse([], { GRANARY_PORT: "nonsense" }, "run")).not.toThrow();
    expect(() => parse([], { GRANARY_PROT: "80" })).not.toThrow();
  });

  test("is a word of its own, and behind two dashes every word is one", () => {
    expect(parse(["hello", "-x"], {}, "run").positionals).toEqual(["hello", "-x"]);
    expect(parse(["--", "--port", "80"], {}, "run").positionals).toEqual(["--port", "80"]);
  });

  test("asks for help even where a variable makes no sense", () => {
    expect(parse(["--help"], { GRANARY_PORT: "x" }).wantsHelp).toBe(true);
  });

  test("asks for help when it is --help or -h", () => {
    expect([parse(["--help"]).wantsHelp, parse(["-h"]).wantsHelp, parse([]).wantsHelp]).toEqual([
      true,
      true,
      false,
    ]);
    expect(parse(["--", "-h"], {}, "run").wantsHelp).toBe(false);
  });
});

describe("a value that is asked for without being there", () => {
  test("is refused by name", () => {
    const { flags } = parse([]);
    expectError(() => flags.required("max-model-len"), "usage", "--max-model-len");
    expect(flags.required<number>("port")).toBe(8000);
  });
});
