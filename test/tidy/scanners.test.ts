/** The scanners that the other files of this folder rely on, on text whose answer is known. */
import { describe, expect, test } from "bun:test";
import { codeWithoutText } from "../support/code-without-text";
import { importsOf } from "../support/import-graph";
import { nativeFunctions } from "../support/native-functions";
import { functionsOf } from "../support/type-script-functions";

describe("code without text", () => {
  const blank = (text: string) => " ".repeat(text.length);

  test("keeps the code and every line's length", () => {
    expect(codeWithoutText('a("b") // c')).toBe(`a("${blank("b")}") ${blank("// c")}`);
    expect(codeWithoutText("x /* y\nz */ + 1")).toBe(`x ${blank("/* y")}\n${blank("z */")} + 1`);
    expect(codeWithoutText("`a\nb` + c")).toBe("` \n ` + c");
    expect(codeWithoutText("'\\'' + d")).toBe("'  ' + d");
  });

  test("ends a text at its line, and takes a digit separator for none", () => {
    expect(codeWithoutText("it's\nany")).toBe(`it'${blank("s")}\nany`);
    expect(codeWithoutText("1'000'000 + any")).toBe("1'000'000 + any");
  });
});

describe("functions of C++", () => {
  const lengths = (source: string) => nativeFunctions(source).map(({ line, length }) => [line, length]);

  test("are found in namespaces, classes and calls, with their heads", () => {
    const source = [
      "#define WRAP(x) do { x; } while (0)",
      "namespace a {",
      "template <typename T>",
      "__global__ void kernel(",
      "    const T* p) {",
      "  for (int i = 0; i < 3; ++i) {",
      "    if (p[i] == '}') { return; }",
      "  }",
      "}",
      "struct S { int x; int get() const { return x; } };",
      "void call() {",
      "  each(1, [&](int i) {",
      "    use(i);",
      "  });",
      "}",
      "}  // namespace a",
    ].join("\n");
    expect(lengths(source)).toEqual([
      [3, 7],
      [10, 1],
      [12, 3],
      [11, 5],
    ]);
  });
});

describe("imports", () => {
  test("are read in every form, and resolved", () => {
    const text = [
      'import { a } from "../src/assert";',
      'import type { B } from "../src/limits";',
      'export { c } from "elysia";',
      "import {",
      "  d,",
      '} from "node:fs";',
      'import "./side-effect";',
      'const e = "import x from y";',
    ].join("\n");
    const found = importsOf({ path: "test/here.ts", text, lines: [] });
    expect(found.map(({ to, isTypeOnly }) => [to, isTypeOnly])).toEqual([
      ["src/assert.ts", false],
      ["src/limits.ts", true],
      ["elysia", false],
      ["node:fs", false],
      ["test/side-effect", false],
    ]);
  });
});

describe("functions of TypeScript", () => {
  test("are found by the compiler, this very one among them", async () => {
    const functions = await functionsOf(["test/tidy/scanners.test.ts"]);
    const groups = functions.filter(({ isTestGroup }) => isTestGroup);
    expect(groups).toHaveLength(4);
    expect(groups.at(-1)?.length).toBeGreaterThan(5);
    expect(functions.length).toBeGreaterThan(groups.length);
  }, 60_000);
});
