/** The log of a serving process: one line an event on standard error, fields as key=value. */
import type { Log, LogFields } from "../server/dependencies";
import type { Runtime } from "./runtime";

export function lineLog(runtime: Pick<Runtime, "err">): Log {
  const write = (level: string) => (message: string, fields?: LogFields) => {
    const tail = Object.entries(fields ?? {}).map(([key, value]) => ` ${key}=${JSON.stringify(value)}`);
    runtime.err(`${level}: ${message}${tail.join("")}\n`);
  };
  return { info: write("info"), warn: write("warning"), error: write("error") };
}
