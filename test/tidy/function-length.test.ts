/** Functions that fit on a screen: under 70 lines, in every language. */
import { describe, expect, test } from "bun:test";
import { nativeFunctions } from "../support/native-functions";
import { nativeFiles, typeScriptFiles } from "../support/source-files";
import { functionsOf } from "../support/type-script-functions";

const maxLines = 70;

describe("functions", () => {
  test(`of TypeScript have fewer than ${maxLines} lines`, async () => {
    const functions = await functionsOf(typeScriptFiles.map(({ path }) => path));
    expect(functions.length).toBeGreaterThan(1000);
    const long = functions.filter(({ length, isTestGroup }) => length >= maxLines && !isTestGroup);
    expect(long.map(({ path, line, length }) => `${path}:${line}: ${length}`)).toEqual([]);
  }, 60_000); // The compiler reads the whole project first.

  test(`of C++ and CUDA have fewer than ${maxLines} lines`, () => {
    const functions = nativeFiles.flatMap(({ path, text }) =>
      nativeFunctions(text).map(({ line, length }) => ({ path, line, length })),
    );
    expect(functions.length).toBeGreaterThan(200);
    const long = functions.filter(({ length }) => length >= maxLines);
    expect(long.map(({ path, line, length }) => `${path}:${line}: ${length}`)).toEqual([]);
  });
});
