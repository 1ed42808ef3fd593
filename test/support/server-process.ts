/** A real server process for tests: the built executable on a free port, with its standard error kept. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { loadReferenceCase } from "./reference-case";

const root = join(import.meta.dir, "../..");
const executable = join(root, "dist/granary");

export interface ServerProcess extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** What it wrote to standard error so far. */
  log(): string;
  /** Sends a signal and resolves with the exit code. */
  end(signal?: NodeJS.Signals): Promise<number>;
  exited: Promise<number>;
}

export interface ServerProcessOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Path of another copy of the executable. */
  readonly executable?: string;
}

/** The command that starts granary: the executable where it was built, else the sources. */
export function granaryCommand(path: string = executable): readonly string[] {
  return existsSync(path) ? [path] : [process.execPath, join(root, "src/main.ts")];
}

/** Starts `granary serve` with `flags` and waits until it is ready. */
export async function startServer(
  flags: readonly string[],
  options: ServerProcessOptions = {},
): Promise<ServerProcess> {
  const child = Bun.spawn([...granaryCommand(options.executable), "serve", "--port", "0", ...flags], {
    cwd: options.cwd ?? root,
    env: { ...process.env, ...options.env },
    stdout: "ignore",
    stderr: "pipe",
  });
  let text = "";
  const ready = Promise.withResolvers<string>();
  const pump = async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stderr) {
      text += decoder.decode(chunk, { stream: true });
      const url = / at (http:\S+) \(ready/.exec(text)?.[1];
      if (url !== undefined) ready.resolve(url);
    }
    ready.reject(new Error(`the server ended before it was ready:\n${text}`));
  };
  void pump();
  const url = await ready.promise;
  const end = async (signal: NodeJS.Signals = "SIGTERM") => {
    child.kill(signal);
    return child.exited;
  };
  return {
    url,
    pid: child.pid,
    log: () => text,
    end,
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      await end("SIGKILL");
    },
  };
}

/** Serves a reference case with its synthetic weights on the CPU. */
export function startReferenceServer(name: string, flags: readonly string[] = []): Promise<ServerProcess> {
  const { directory } = loadReferenceCase(name);
  return startServer([
    "--model",
    directory,
    "--load-format",
    "dummy",
    "--served-model-name",
    name,
    "--device",
    "cpu",
    ...flags,
  ]);
}

/** Posts JSON and returns the parsed answer; throws unless it is a success. */
export async function postJson<T>(url: string, body: unknown): Promise<T> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text) as T;
}
