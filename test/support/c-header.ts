/**
 * Reads the structs, enums and functions of a C header that
 * keeps to plain declarations. No preprocessor, no nesting.
 */
import { readFileSync } from "node:fs";

export interface CMember {
  readonly type: string;
  readonly name: string;
  /** Elements of an array member. */
  readonly extent?: number;
}

export interface CHeader {
  readonly structs: ReadonlyMap<string, readonly CMember[]>;
  readonly enums: ReadonlyMap<string, Readonly<Record<string, number>>>;
  /** Number of parameters by function name. */
  readonly functions: ReadonlyMap<string, number>;
  readonly defines: Readonly<Record<string, number>>;
}

function membersOf(body: string): readonly CMember[] {
  const declarations = body.split(";").map((text) => text.trim());
  return declarations
    .filter((text) => text !== "")
    .flatMap((text) => {
      const [, type = "", names = ""] = /^(\w+)\s+(.*)$/s.exec(text) ?? [];
      return names.split(",").map((declarator) => {
        const [, name = "", extent] = /^\s*(\w+)(?:\[(\d+)\])?\s*$/.exec(declarator) ?? [];
        if (type === "" || name === "") throw new Error(`cannot read the declaration '${text}'`);
        return extent === undefined ? { type, name } : { type, name, extent: Number(extent) };
      });
    });
}

function enumeratorsOf(body: string): Readonly<Record<string, number>> {
  return Object.fromEntries(
    [...body.matchAll(/(\w+)\s*=\s*(\d+)/g)].map(([, name = "", value]) => [name, Number(value)]),
  );
}

export function readHeader(path: string): CHeader {
  const text = readFileSync(path, "utf8").replace(/\/\/.*$/gm, "");
  const bodies = (kind: string) =>
    [...text.matchAll(new RegExp(`typedef ${kind} (\\w+) \\{([^}]*)\\}`, "g"))].map(
      ([, name = "", body = ""]) => [name, body] as const,
    );
  const functions = [...text.matchAll(/^[\w* ]+?\b(granary_\w+)\(([^)]*)\);/gm)].map(
    ([, name = "", parameters = ""]) =>
      [name, parameters.trim() === "void" ? 0 : parameters.split(",").length] as const,
  );
  return {
    structs: new Map(bodies("struct").map(([name, body]) => [name, membersOf(body)])),
    enums: new Map(bodies("enum").map(([name, body]) => [name, enumeratorsOf(body)])),
    functions: new Map(functions),
    defines: Object.fromEntries(
      [...text.matchAll(/#define (\w+) (\d+)/g)].map(([, name = "", value]) => [name, Number(value)]),
    ),
  };
}
