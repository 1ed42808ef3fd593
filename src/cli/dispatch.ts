/** From the command line to a command's exit code: 0 fine, 1 failed, 2 used wrongly. */
import { GranaryError, messageOf } from "../assert";
import { bench } from "./bench/bench";
import { doctor } from "./doctor";
import type { CommandName } from "./flag-types";
import { commandHelp, generalHelp } from "./help";
import { type ParsedCommand, parseCommand, refusePositionals } from "./parse-flags";
import { runPrompt } from "./run";
import type { Runtime } from "./runtime";
import { serve } from "./serve";

type Command = (parsed: ParsedCommand, runtime: Runtime) => number | Promise<number>;

const commands: Readonly<Record<CommandName, Command>> = {
  serve: ({ flags, positionals }, runtime) => {
    refusePositionals(positionals);
    return serve(flags, runtime);
  },
  run: ({ flags, positionals }, runtime) => runPrompt(flags, positionals, runtime),
  bench: ({ flags, positionals }, runtime) => bench(flags, positionals, runtime),
  doctor: ({ flags, positionals }, runtime) => {
    refusePositionals(positionals);
    return doctor(flags, runtime);
  },
};

function isCommand(name: string): name is CommandName {
  return Object.hasOwn(commands, name);
}

export async function dispatch(args: readonly string[], runtime: Runtime): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === "--help" || name === "-h" || name === "help") {
    runtime.out(`${generalHelp(runtime.version)}\n`);
    return name === undefined ? 2 : 0;
  }
  if (name === "--version" || name === "version") {
    runtime.out(`granary ${runtime.version}\n`);
    return 0;
  }
  try {
    if (!isCommand(name))
      throw new GranaryError("usage", `unknown command '${name}'; granary --help lists them`);
    const parsed = parseCommand(name, rest, runtime.environment);
    if (parsed.wantsHelp) {
      runtime.out(`${commandHelp(name)}\n`);
      return 0;
    }
    return await commands[name](parsed, runtime);
  } catch (error) {
    runtime.err(`granary: ${messageOf(error)}\n`);
    return error instanceof GranaryError && error.code === "usage" ? 2 : 1;
  }
}
