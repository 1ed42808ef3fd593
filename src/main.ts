/**
 * The composition root: names what only the program's entry can name,
 * hands the process over to a command, and exits with its code.
 */
import { embedded } from "#embedded";
import packageJson from "../package.json" with { type: "json" };
import { dispatch } from "./cli/dispatch";
import type { Runtime } from "./cli/runtime";

let numSignals = 0;

const runtime: Runtime = {
  version: packageJson.version,
  environment: process.env,
  embedded,
  workers: {
    engine: new URL("./engine/worker.ts", import.meta.url),
    tokenizer: new URL("./tokenizer/tokenizer-worker.ts", import.meta.url),
  },
  clockMs: () => performance.now(),
  unixSeconds: () => Math.floor(Date.now() / 1000),
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  onTerminate(listener) {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => listener(++numSignals));
  },
  isTerminal: process.stderr.isTTY === true,
};

process.exit(await dispatch(process.argv.slice(2), runtime));
