/**
 * Builds, checks and tests; ends with one line that counts.
 * Given arguments it only builds and passes them to `bun test`.
 */
import { build } from "./build-executable";

interface Step {
  readonly name: string;
  readonly command: readonly string[];
}

const checks: readonly Step[] = [
  { name: "types", command: ["node_modules/.bin/tsc", "--noEmit"] },
  { name: "style", command: ["node_modules/.bin/biome", "check", "--error-on-warnings"] },
];

async function run(command: readonly string[]): Promise<{ readonly code: number; readonly text: string }> {
  const child = Bun.spawn([...command], {
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, NO_COLOR: "1" },
  });
  const chunks: string[] = [];
  const pump = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      const text = decoder.decode(chunk, { stream: true });
      chunks.push(text);
      process.stdout.write(text);
    }
  };
  const [, , code] = await Promise.all([pump(child.stdout), pump(child.stderr), child.exited]);
  return { code, text: chunks.join("") };
}

/** Sums of the counts that the runner printed last. */
function countOf(text: string, word: string): number {
  const matches = [...text.matchAll(new RegExp(`^\\s*(\\d+) ${word}$`, "gm"))];
  return Number(matches.at(-1)?.[1] ?? 0);
}

const args = process.argv.slice(2);
let passed = 0;
let failed = 0;
try {
  await build({ withDemo: true, ifNeeded: true });
  passed++;
} catch (error) {
  console.error((error as Error).message);
  failed++;
}
if (failed === 0) {
  for (const { name, command } of args.length > 0 ? [] : checks) {
    console.log(`== ${name}`);
    const { code } = await run(command);
    if (code === 0) passed++;
    else failed++;
  }
  console.log("== tests");
  // What needs a card has a command of its own: scripts/gpu-test.
  const withoutCard = args.length > 0 ? [] : ["--path-ignore-patterns=test/gpu/**"];
  const { code, text } = await run([process.execPath, "test", "--only-failures", ...withoutCard, ...args]);
  const [ok, notOk, skipped] = [countOf(text, "pass"), countOf(text, "fail"), countOf(text, "skip")];
  passed += ok;
  // A runner that died or found nothing has failed, whatever it counted.
  failed += notOk > 0 ? notOk : code !== 0 || ok + skipped === 0 ? 1 : 0;
  const skippedText = skipped > 0 ? `, ${skipped} skipped` : "";
  console.log(`${passed} passed, ${failed} failed${skippedText}`);
} else {
  console.log(`${passed} passed, ${failed} failed`);
}
process.exit(failed === 0 ? 0 : 1);
