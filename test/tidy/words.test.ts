/**
 * Words that have no place in the project: reminders, loose
 * types, machines, and papers that its reader does not have.
 */
import { describe, expect, test } from "bun:test";
import { codeWithoutText } from "../support/code-without-text";
import { linesMatching, projectFiles, sourceFiles, typeScriptFiles } from "../support/source-files";

// This file must spell what it looks for.
const others = projectFiles.filter(({ path }) => !path.startsWith("test/tidy/"));
const otherSources = sourceFiles.filter(({ path }) => !path.startsWith("test/tidy/"));

describe("no file", () => {
  test("leaves a reminder behind", () => {
    expect(linesMatching(others, /\b(TO[D]O|FIX[M]E|X[X]X|HAC[K])\b/)).toEqual([]);
  });

  test("uses the type any, or switches a check off without a reason", () => {
    const loose = typeScriptFiles.filter(({ text }) =>
      /[:<,|&(]\s*any\b|\bas any\b/.test(codeWithoutText(text)),
    );
    expect(loose.map(({ path }) => path)).toEqual([]);
    const unexplained = linesMatching(
      otherSources,
      /@ts-ignore|@ts-expect-error\s*$|biome-ignore [^:]*:?\s*$/,
    );
    expect(unexplained).toEqual([]);
  });

  test("names a path of the machine it was written on", () => {
    expect(linesMatching(others, /\/work\/|\.\.\/shared\/|\/root\/|\/Users\//)).toEqual([]);
  });

  test("names a package registry or a mirror", () => {
    const hosts =
      /registry\.(npm|yarn)|npmjs\.(com|org)|pypi\.org|pythonhosted|artifactory|\bmirrors?\.[a-z]+\./;
    expect(linesMatching(others, hosts)).toEqual([]);
  });

  test("refers to papers, numbers or people that its reader does not have", () => {
    const papers =
      /\b(scheduler|runtime)-(spec|tests?)\b|\bfield-cases\b|\bcache-concepts\b|\bmodel-families\b/;
    expect(linesMatching(others, papers)).toEqual([]);
    expect(linesMatching(otherSources, /\bD(1?[1-9]|2[01]|10)\b(?![-+*/(])/)).toEqual([]);
    expect(linesMatching(others, /\bissues? #?\d|\b[Ff]\d\d\b.*(case|field)/)).toEqual([]);
  });
});
