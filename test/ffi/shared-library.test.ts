/** What the loader must never be given: files that end too soon, pipes, texts. A real library passes. */
import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findCublasLt } from "../../ffi/cublaslt";
import { findNvrtc } from "../../ffi/nvrtc-probe";
import { libraryFault } from "../../ffi/shared-library";
import { cpuLibraryPath } from "../support/cpu-device";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

const whole = readFileSync(cpuLibraryPath);

function fileOf(bytes: Uint8Array | string): string {
  const path = join(temporaryDirectory(), "library.so");
  writeFileSync(path, bytes);
  return path;
}

function pipe(): string {
  const path = `${fileOf("")}.pipe`;
  expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
  return path;
}

/** The library with one 64-bit number of its headers replaced. */
function changed(at: number, value: bigint): string {
  const bytes = Buffer.from(whole);
  bytes.writeBigUInt64LE(value, at);
  return fileOf(bytes);
}

describe("a file is a whole shared library", () => {
  test("when the linker made it", () => {
    expect(libraryFault(cpuLibraryPath)).toBeUndefined();
  });

  test("not when it is cut anywhere", () => {
    for (const bytes of [0, 3, 63, 64, 5000, whole.length >> 1, whole.length - 1]) {
      const path = fileOf(whole.subarray(0, bytes));
      expect(libraryFault(path)).toBe(`${path} is not a whole shared library`);
    }
  });

  test("not when a header points past its end", () => {
    const [programOffsetAt, sectionOffsetAt] = [32, 40];
    const pieces = Number(whole.readBigUInt64LE(programOffsetAt));
    const firstLoaded = Array.from({ length: whole.readUInt16LE(56) }, (_, i) => pieces + 56 * i).find(
      (at) => whole.readUInt32LE(at) === 1,
    ) as number;
    for (const at of [programOffsetAt, sectionOffsetAt, firstLoaded + 8, firstLoaded + 32]) {
      for (const value of [BigInt(whole.length + 1), 2n ** 64n - 1n])
        expect(libraryFault(changed(at, value))).toEndWith("is not a whole shared library");
    }
  });

  test("not when it is a text, a folder, a pipe or nothing", () => {
    const text = fileOf("a line of text that is longer than the header of a library would have to be");
    expect(libraryFault(text)).toBe(`${text} is not a whole shared library`);
    expect(libraryFault("/tmp")).toBe("/tmp is not a file");
    const path = pipe();
    expect(libraryFault(path)).toBe(`${path} is not a file`);
    expect(libraryFault("/nowhere/x.so")).toBe("/nowhere/x.so does not exist");
  });
});

describe("a toolkit's library", () => {
  const finders = [
    ["GRANARY_NVRTC", "nvrtc", (given: string | undefined) => findNvrtc(given, "sm_80")],
    ["GRANARY_CUBLASLT", "cublasLt", (given: string | undefined) => findCublasLt(given).text],
  ] as const;

  for (const [variable, stem, find] of finders) {
    test(`that ${variable} names is reported with its path and its fault`, () => {
      const cut = fileOf(whole.subarray(0, 5000));
      expect(find(cut)).toStartWith(`${variable} names no usable library (${cut} is not a whole shared`);
      const path = pipe();
      expect(find(path)).toStartWith(`${variable} names no usable library (${path} is not a file)`);
      expect(find("/nowhere/x.so")).toContain("(/nowhere/x.so does not exist)");
      expect(find("/nowhere/x.so")).not.toStartWith("not found");
      expect(find("")).toBe(find(undefined));
    });

    test(`in the folder that ${variable} names is reported when it is cut or another's`, () => {
      const folder = temporaryDirectory();
      writeFileSync(join(folder, `lib${stem}.so.13`), whole.subarray(0, 5000));
      writeFileSync(join(folder, `lib${stem}.so.12`), whole);
      expect(find(folder)).toContain(`lib${stem}.so.13 is not a whole shared library; Symbol`);
    });
  }

  test("that is cut in the working directory is not opened by its bare name", () => {
    const folder = temporaryDirectory();
    writeFileSync(join(folder, "libnvrtc.so.13"), whole.subarray(0, 5000));
    const probe = join(import.meta.dir, "../../ffi/nvrtc-probe.ts");
    const script = `console.log((await import(${JSON.stringify(probe)})).findNvrtc(undefined, "sm_80"))`;
    const child = Bun.spawnSync([process.execPath, "-e", script], { cwd: folder });
    expect(child.exitCode).toBe(0);
    expect(child.stdout.toString()).not.toBe("");
  });
});
