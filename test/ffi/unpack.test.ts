/**
 * Embedded files on their way into the file system: private,
 * checked before they are believed, never written twice.
 */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type EmbeddedFile, unpack } from "../../ffi/unpack";
import { expectError } from "../support/expect-error";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

function embed(name: string, content: string): EmbeddedFile {
  const path = join(temporaryDirectory(), name);
  writeFileSync(path, content);
  return { name, path, sha256: createHash("sha256").update(content).digest("hex") };
}

const files = [embed("library.so", "machine code"), embed("notes.txt", "a note")];

/** A cache directory and, for the worst case, a temporary one, both empty. */
function places() {
  const [cache, temporary] = [temporaryDirectory(), temporaryDirectory()];
  return { cache, temporary, environment: { XDG_CACHE_HOME: cache, TMPDIR: temporary } };
}

const contentOf = (directory: string) =>
  Object.fromEntries(
    readdirSync(directory).map((name) => [name, readFileSync(join(directory, name), "utf8")]),
  );

const isRoot = process.getuid?.() === 0;
const asRoot = "only root can plant what belongs to somebody else";

describe("unpacking", () => {
  test("makes one private directory named by the content", () => {
    const { cache, environment } = places();
    const directory = unpack(files, environment);
    expect(directory).toStartWith(join(cache, "granary"));
    expect(contentOf(directory)).toEqual({ "library.so": "machine code", "notes.txt": "a note" });
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect(statSync(join(cache, "granary")).mode & 0o777).toBe(0o700);
    const other = unpack([embed("library.so", "newer machine code")], environment);
    expect(other).not.toBe(directory);
  });

  test("leaves one copy, unwritten since, however often it is done", () => {
    const { cache, environment } = places();
    const directory = unpack(files, environment);
    const { ino, mtimeMs } = statSync(join(directory, "library.so"));
    for (let i = 0; i < 200; i++) expect(unpack(files, environment)).toBe(directory);
    expect(statSync(join(directory, "library.so"))).toMatchObject({ ino, mtimeMs });
    expect(readdirSync(join(cache, "granary"))).toHaveLength(1);
  });

  test("prefers the cache directory, then the home's, then the temporary one", () => {
    const [cache, home, temporary] = [temporaryDirectory(), temporaryDirectory(), temporaryDirectory()];
    const all = { XDG_CACHE_HOME: cache, HOME: home, TMPDIR: temporary };
    expect(unpack(files, all)).toStartWith(join(cache, "granary/"));
    expect(unpack(files, { ...all, XDG_CACHE_HOME: undefined })).toStartWith(join(home, ".cache/granary/"));
    expect(unpack(files, { TMPDIR: temporary })).toStartWith(
      join(temporary, `granary-${process.getuid?.()}/`),
    );
  });

  test("never takes a place from where the program was started", () => {
    const temporary = temporaryDirectory();
    for (const setting of ["", "cache", "./cache"]) {
      const environment = { XDG_CACHE_HOME: setting, HOME: setting, TMPDIR: temporary };
      expect(unpack(files, environment)).toStartWith(join(temporary, `granary-${process.getuid?.()}/`));
    }
    expect(existsSync("granary")).toBe(false);
  });
});

describe("what lies there already", () => {
  test("is replaced when its content is another", () => {
    const { environment } = places();
    const directory = unpack(files, environment);
    writeFileSync(join(directory, "library.so"), "planted");
    expect(unpack(files, environment)).toBe(directory);
    expect(readFileSync(join(directory, "library.so"), "utf8")).toBe("machine code");
  });

  test("is replaced when it is incomplete, or open to others", () => {
    const { environment } = places();
    const directory = unpack(files, environment);
    rmSync(join(directory, "notes.txt"));
    unpack(files, environment);
    expect(existsSync(join(directory, "notes.txt"))).toBe(true);
    chmodSync(directory, 0o755);
    unpack(files, environment);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  });

  test("is never followed when it is a link", () => {
    const { environment } = places();
    const directory = unpack(files, environment);
    const elsewhere = temporaryDirectory();
    chmodSync(elsewhere, 0o700);
    for (const { name, path } of files) writeFileSync(join(elsewhere, name), readFileSync(path));
    rmSync(directory, { recursive: true });
    symlinkSync(elsewhere, directory);
    unpack(files, environment);
    expect(lstatSync(directory).isSymbolicLink()).toBe(false);
    expect(readdirSync(elsewhere)).toHaveLength(2);
  });

  test.skipIf(!isRoot)(`is not trusted in a directory that others may write to (${asRoot})`, () => {
    const { cache, temporary, environment } = places();
    const root = join(cache, "granary");
    mkdirSync(root);
    chmodSync(root, 0o777);
    expect(unpack(files, environment)).toStartWith(temporary);
    chmodSync(root, 0o755);
    chownSync(root, 65_534, 65_534);
    expect(unpack(files, environment)).toStartWith(temporary);
    expect(readdirSync(root)).toEqual([]);
  });
});

describe("a place that cannot be used", () => {
  test("gives way to the next", () => {
    const { cache, temporary, environment } = places();
    writeFileSync(join(cache, "granary"), "a file where a directory should be");
    expect(unpack(files, environment)).toStartWith(temporary);
    expect(unpack(files, { XDG_CACHE_HOME: "/proc", TMPDIR: temporary })).toStartWith(temporary);
  });

  test("is left when whoever loads from it refuses it", () => {
    const { cache, temporary, environment } = places();
    const refused: string[] = [];
    const directory = unpack(files, environment, (candidate) => {
      if (!candidate.startsWith(cache)) return;
      refused.push(candidate);
      throw new Error("mounted noexec");
    });
    expect(refused).toHaveLength(1);
    expect(directory).toStartWith(temporary);
  });

  test("is made when it is merely missing", () => {
    const missing = join(temporaryDirectory(), "not", "there");
    expect(unpack(files, { TMPDIR: missing })).toStartWith(missing);
  });

  test("is named, with what to change, when no other is left", () => {
    const environment = { XDG_CACHE_HOME: "/proc/a", TMPDIR: "/proc/b" };
    const message = expectError(() => unpack(files, environment), "native_unsupported", "library.so");
    for (const text of ["/proc/a/granary", "/proc/b/granary", "XDG_CACHE_HOME"])
      expect(message).toContain(text);
    expect(message).not.toContain("\n");
  });
});

describe("two programs at once", () => {
  test("end with one intact copy that both use", async () => {
    const { cache, environment } = places();
    const script = join(temporaryDirectory(), "unpack.ts");
    const module = join(import.meta.dir, "../../ffi/unpack.ts");
    writeFileSync(
      script,
      `import { unpack } from ${JSON.stringify(module)};
       while (Date.now() < Number(process.argv[2]));
       console.log(unpack(${JSON.stringify(files)}, ${JSON.stringify(environment)}));`,
    );
    const startAt = String(Date.now() + 400);
    const runs = [0, 1, 2].map(() => Bun.spawn([process.execPath, script, startAt], { stdout: "pipe" }));
    const printed = await Promise.all(runs.map((run) => new Response(run.stdout).text()));
    expect(new Set(printed).size).toBe(1);
    expect(readdirSync(join(cache, "granary"))).toHaveLength(1);
    expect(contentOf(printed[0]?.trim() ?? "")).toEqual({
      "library.so": "machine code",
      "notes.txt": "a note",
    });
  });
});
