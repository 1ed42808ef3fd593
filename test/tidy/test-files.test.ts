/**
 * Tests that run: none alone, none skipped without saying why, each file in a folder that the project has.
 */
import { describe, expect, test } from "bun:test";
import { codeWithoutText } from "../support/code-without-text";
import { filesIn, type SourceFile, typeScriptFiles } from "../support/source-files";

const testFiles = filesIn(typeScriptFiles, "test");

/** "path:line" where the code, not a text in it, matches. */
function codeMatching(files: readonly SourceFile[], pattern: RegExp): string[] {
  return files.flatMap(({ path, text }) =>
    codeWithoutText(text)
      .split("\n")
      .flatMap((line, i) => (pattern.test(line) ? [`${path}:${i + 1}`] : [])),
  );
}

describe("no test", () => {
  test("runs alone or is put off", () => {
    expect(codeMatching(testFiles, /\b(test|it|describe)\.(only|todo|failing)\b/)).toEqual([]);
    expect(codeMatching(testFiles, /\b(test|it|describe)\.skip\(/)).toEqual([]);
  });

  test("is skipped on a condition without the reason in its name or beside it", () => {
    const conditional = testFiles.flatMap(({ path, lines }) =>
      lines.flatMap((line, i) => {
        if (!/\.(skipIf|if)\(/.test(line) || !/\b(test|it|describe)\./.test(line)) return [];
        const nearby = lines.slice(Math.max(0, i - 4), i + 3).join("\n");
        return /reason|because|without|only |needs|\/\/|\(/i.test(nearby) ? [] : [`${path}:${i + 1}`];
      }),
    );
    expect(conditional).toEqual([]);
  });

  test("expects nothing", () => {
    const idle = testFiles.filter(
      ({ path, text }) => path.endsWith(".test.ts") && !/\bexpect|check\(|assert/.test(text),
    );
    expect(idle.map(({ path }) => path)).toEqual([]);
  });
});

describe("a test file", () => {
  test("lies in a folder named after what it tests", () => {
    const own = new Set([
      "demo",
      "e2e",
      "fixtures",
      "gpu",
      "kernels",
      "parity",
      "scenarios",
      "sim",
      "support",
      "tidy",
      "twin",
    ]);
    const folders = new Set(
      typeScriptFiles
        .map(({ path }) => /^(?:src\/([^/]+)\/|(ffi|scripts|bench)\/)/.exec(path))
        .map((m) => m?.[1] ?? m?.[2]),
    );
    const lost = testFiles.filter(({ path }) => {
      const folder = path.split("/")[1] ?? "";
      return !own.has(folder) && !folders.has(folder);
    });
    expect(lost.map(({ path }) => path)).toEqual([]);
  });
});
