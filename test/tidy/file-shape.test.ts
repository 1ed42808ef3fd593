/** Files that can be read: short, narrow, and opened by a sentence that says what they are. */
import { describe, expect, test } from "bun:test";
import { nativeFiles, sourceFiles, typeScriptFiles } from "../support/source-files";

const maxLines = 500;
const maxMedianLines = 100;
const maxColumns = 110;

describe("every source file", () => {
  test("is found: the project has hundreds", () => {
    expect(typeScriptFiles.length).toBeGreaterThan(200);
    expect(nativeFiles.length).toBeGreaterThan(50);
  });

  test(`has at most ${maxLines} lines`, () => {
    const long = sourceFiles.filter(({ lines }) => lines.length > maxLines);
    expect(long.map(({ path, lines }) => `${path}: ${lines.length}`)).toEqual([]);
  });

  test(`is short: fewer than ${maxMedianLines} lines at the median`, () => {
    const lengths = sourceFiles.map(({ lines }) => lines.length).sort((a, b) => a - b);
    expect(lengths[Math.floor(lengths.length / 2)]).toBeLessThan(maxMedianLines);
  });

  test(`has lines of at most ${maxColumns} columns`, () => {
    const wide = sourceFiles.flatMap(({ path, lines }) =>
      lines.flatMap((line, i) =>
        [...line].length > maxColumns ? [`${path}:${i + 1}: ${[...line].length}`] : [],
      ),
    );
    expect(wide).toEqual([]);
  });

  test("opens with a comment that says what it is", () => {
    const opening = /^(#!.*\n)?(\/\*\*|\/\/|\/\*|"""|#) ?\S|^\/\*\*\n \* \S/;
    const silent = sourceFiles.filter(({ text }) => !opening.test(text));
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  test("ends with one line break and has no trailing spaces", () => {
    const ragged = sourceFiles.filter(
      ({ text, lines }) => !/[^\n]\n$/.test(text) || lines.some((line) => /\s$/.test(line)),
    );
    expect(ragged.map(({ path }) => path)).toEqual([]);
  });

  test("has a name in lower case with dashes, in Python with underscores", () => {
    const odd = sourceFiles.filter(({ path }) => {
      const name = path.split("/").at(-1) ?? "";
      const pattern = path.endsWith(".py")
        ? /^[a-z0-9_]+\.py$/
        : /^[a-z0-9]+(-[a-z0-9]+)*(\.test|\.d)?\.[a-z]+$/;
      return !pattern.test(name);
    });
    expect(odd.map(({ path }) => path)).toEqual([]);
  });
});
