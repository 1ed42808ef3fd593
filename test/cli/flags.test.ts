/** The flag table: names, twins, defaults and help of every flag. */
import { describe, expect, test } from "bun:test";
import { type CommandName, environmentName } from "../../src/cli/flag-types";
import { allFlags, flagSections } from "../../src/cli/flags";
import { commandHelp, generalHelp } from "../../src/cli/help";
import { parseCommand, parseFlagValue } from "../../src/cli/parse-flags";

const commands: readonly CommandName[] = ["serve", "run", "bench", "doctor"];

describe("every flag", () => {
  test("has a name of its own, in lower case with dashes", () => {
    const names = allFlags.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/);
  });

  test("has an environment twin of its own", () => {
    const twins = allFlags.map(({ name }) => environmentName(name));
    expect(new Set(twins).size).toBe(twins.length);
    for (const twin of twins) expect(twin).toMatch(/^GRANARY_[A-Z0-9_]+$/);
    expect(environmentName("max-model-len")).toBe("GRANARY_MAX_MODEL_LEN");
  });

  test("belongs to a command and to one section", () => {
    expect(allFlags).toHaveLength(flagSections.reduce((sum, { flags }) => sum + flags.length, 0));
    for (const { name, commands: own } of allFlags) expect([name, own.length]).not.toEqual([name, 0]);
  });

  test("has a default that it would accept itself", () => {
    for (const spec of allFlags) {
      if (spec.defaultValue === undefined) continue;
      const value = parseFlagValue(spec, spec.defaultValue, spec.name);
      if (spec.kind === "integer" || spec.kind === "number") expect(value).toBe(Number(spec.defaultValue));
    }
  });

  test("is off unless it is named, when it is a switch, and explains itself in one line", () => {
    for (const { kind, defaultValue, choices, help } of allFlags) {
      if (kind === "flag") expect([defaultValue, choices]).toEqual([undefined, undefined]);
      expect(help).toMatch(/^\S.*[^.\s]$/);
    }
  });
});

describe("help", () => {
  for (const command of commands) {
    test(`of ${command} lists its flags with twin and default, and no other command's`, () => {
      const text = commandHelp(command);
      const listed = [...text.matchAll(/^ {2}--([a-z0-9-]+)/gm)].map(([, name]) => name);
      const own = allFlags.filter((flag) => flag.commands.includes(command));
      expect(listed).toEqual(own.map(({ name }) => name));
      for (const { name, defaultValue, help } of own) {
        const fallback = defaultValue === undefined ? "" : ` (default ${defaultValue})`;
        expect(text).toContain(`      ${help}${fallback} [${environmentName(name)}]`);
      }
      for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(150);
    });
  }

  test("of the program names every command", () => {
    const text = generalHelp("1.2.3");
    for (const command of commands) expect(text).toMatch(new RegExp(`^ {2}${command} `, "m"));
    expect(text).toContain("granary 1.2.3");
  });
});

describe("vLLM's names", () => {
  test("are taken where a flag means the same", () => {
    const shared = [
      "model",
      "revision",
      "seed",
      "dtype",
      "load-format",
      "max-model-len",
      "max-num-seqs",
      "max-num-batched-tokens",
      "gpu-memory-utilization",
      "served-model-name",
      "kv-cache-dtype",
      "no-enable-prefix-caching",
      "enforce-eager",
      "max-logprobs",
      "host",
      "port",
      "api-key",
    ];
    const names = allFlags.map(({ name }) => name);
    for (const name of shared) expect(names).toContain(name);
  });

  test("with defaults that serve one machine", () => {
    const { flags } = parseCommand("serve", [], {});
    expect([flags.text("host"), flags.number("port"), flags.number("max-logprobs")]).toEqual([
      "127.0.0.1",
      8000,
      20,
    ]);
  });
});
