/** Help texts, made from the flag table. */
import { type CommandName, environmentName, type FlagSpec } from "./flag-types";
import { flagSections } from "./flags";

const summaries: Readonly<Record<CommandName, { readonly usage: string; readonly text: string }>> = {
  serve: {
    usage: "granary serve [flags]",
    text: "Serve a model over an OpenAI-compatible API (REST, SSE, WebSocket).",
  },
  run: { usage: 'granary run [flags] "prompt"', text: "Answer one prompt on standard output." },
  bench: {
    usage: "granary bench throughput|latency|serve [flags]",
    text: "Measure: throughput and latency run an engine here, serve loads a running server over HTTP.",
  },
  doctor: {
    usage: "granary doctor [flags]",
    text: "Say what this machine has, what would run where, and why.",
  },
};

export function generalHelp(version: string): string {
  const commands = Object.entries(summaries).map(([name, { text }]) => `  ${name.padEnd(8)} ${text}`);
  return [
    `granary ${version}: serves language models from a hybrid prefix cache`,
    "",
    "Usage: granary COMMAND [flags]",
    "",
    ...commands,
    "",
    "granary COMMAND --help lists a command's flags. --version prints the version.",
  ].join("\n");
}

function describeFlag(flag: FlagSpec): string {
  const values = flag.choices?.join("|") ?? flag.placeholder ?? (flag.kind === "text" ? "TEXT" : "N");
  const head = flag.kind === "flag" ? `--${flag.name}` : `--${flag.name} ${values}`;
  const fallback = flag.defaultValue === undefined ? "" : ` (default ${flag.defaultValue})`;
  return `  ${head}\n      ${flag.help}${fallback} [${environmentName(flag.name)}]`;
}

export function commandHelp(command: CommandName): string {
  const { usage, text } = summaries[command];
  const sections = flagSections.flatMap(({ title, flags }) => {
    const own = flags.filter(({ commands }) => commands.includes(command));
    return own.length === 0 ? [] : ["", `${title}:`, ...own.map(describeFlag)];
  });
  return [
    `Usage: ${usage}`,
    "",
    text,
    ...sections,
    "",
    "Every flag can be set by the variable in brackets.",
  ].join("\n");
}
