/** A real server process for a benchmark: full-size configuration, made-up weights, a tokenizer beside it. */
import { copyFileSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exitWith } from "./usage";

/** A model directory of a configuration and the demo's tokenizer, whose ids every vocabulary contains. */
function modelDirectory(configPath: string): string {
  const directory = mkdtempSync(join(tmpdir(), "granary-bench-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  copyFileSync(configPath, join(directory, "config.json"));
  const demo = join(import.meta.dir, "../../src/demo/model");
  for (const name of ["tokenizer.json", "tokenizer_config.json"])
    copyFileSync(join(demo, name), join(directory, name));
  writeFileSync(join(directory, "generation_config.json"), "{}");
  return directory;
}

export interface BenchServer {
  readonly url: string;
  readonly process: Bun.Subprocess;
  /** Ends it as an operator would; its exit code. */
  stop(): Promise<number>;
  hasEnded(): boolean;
}

export interface ServerFiles {
  readonly executable: string;
  readonly configPath: string;
}

/** The first two arguments of a script; ends it where they name no files. */
export function serverFiles([executable, configPath]: readonly string[]): ServerFiles {
  if (executable === undefined || configPath === undefined) exitWith("name the executable and a config.json");
  for (const path of [executable, configPath]) if (!existsSync(path)) exitWith(`${path} does not exist`);
  return { executable, configPath };
}

/** Starts `granary serve` under the model name "bench" and waits until it answers. */
export async function startServer(
  { executable, configPath }: ServerFiles,
  port: string,
  flags: readonly string[],
): Promise<BenchServer> {
  // A signal ends the process by its exit, which clears up.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
  const directory = modelDirectory(configPath);
  const model = ["--model", directory, "--served-model-name", "bench"];
  const { BUN_BE_BUN: _, ...env } = process.env;
  const command = [executable, "serve", ...model, "--load-format", "dummy", "--port", port, ...flags];
  const child = Bun.spawn(command, { env, stdin: "ignore", stdout: "inherit", stderr: "inherit" });
  const url = `http://127.0.0.1:${port}`;
  process.once("exit", () => child.kill("SIGTERM"));
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const stop = () => {
    child.kill("SIGTERM");
    return child.exited;
  };
  for (;;) {
    if (hasEnded()) exitWith(`the server ended with ${child.exitCode ?? child.signalCode}`);
    const health = await fetch(`${url}/health`).catch(() => undefined);
    if (health?.status === 200) return { url, process: child, stop, hasEnded };
    await Bun.sleep(100);
  }
}
