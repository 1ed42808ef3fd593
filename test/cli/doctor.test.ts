/** The doctor: what this machine has, what would run where, and why; whatever is broken. */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { dispatch } from "../../src/cli/dispatch";
import { CubinCache } from "../../src/runtime-kernels/cubin-cache";
import { embeddedFile, fakeRuntime } from "../support/fake-runtime";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";

removeTemporaryDirectories();

async function findings(options: Parameters<typeof fakeRuntime>[0] = {}, ...args: string[]) {
  const runtime = fakeRuntime(options);
  expect(await dispatch(["doctor", ...args], runtime)).toBe(0);
  expect(runtime.printed.err).toBe("");
  const lines = runtime.printed.out.trimEnd().split("\n");
  return Object.fromEntries(lines.map((line) => [line.slice(0, 14).trim(), line.slice(15)]));
}

/** A file in the library's place that is none. */
function brokenLibrary() {
  const path = join(temporaryDirectory(), "libgranary_cpu.so");
  writeFileSync(path, "not a library");
  return embeddedFile(path);
}

describe("the doctor", () => {
  test("says what a machine without a GPU runs on, and why", async () => {
    const found = await findings();
    expect(found.granary).toBe("1.2.3");
    expect(found.Bun).toBe(Bun.version);
    expect(found.CPU).toMatch(/\(.*avx2.*\)$/);
    expect(found.memory).toMatch(/^\d+\.\d of \d+\.\d GiB free$/);
    expect(found["CPU library"]).toEndWith("libgranary_cpu.so");
    expect(found["CUDA library"]).toContain("not in this build");
    expect(found["models run on"]).toBe("the CPU: no usable GPU was found");
    expect(found["demo model"]).toBe("not in this build");
    expect(found.NVRTC).toBeString();
  });

  test("counts the threads it is told", async () => {
    expect((await findings({}, "--threads", "3")).cores).toContain("3 would compute");
  });

  test("goes on when a library does not load, and says so", async () => {
    const broken = brokenLibrary();
    const found = await findings({ embedded: { cpuLibrary: broken, cudaLibrary: broken } });
    expect(found.CPU).toStartWith("unusable: ");
    expect(found.CUDA).toStartWith("unusable: ");
    expect(found["models run on"]).toContain("no usable GPU");
  });

  test("counts the kernels of the cache that are whole, and what else lies there", async () => {
    const root = temporaryDirectory();
    const environment = { XDG_CACHE_HOME: root };
    const cache = CubinCache.open(environment);
    cache?.store("a", new Uint8Array(2016));
    expect((await findings({ environment }))["kernel cache"]).toEndWith(": 1 compiled at run time, 2 KiB");
    writeFileSync(join(cache?.directory ?? "", "b.cubin"), "a line\n");
    expect((await findings({ environment }))["kernel cache"]).toEndWith(", 2 KiB; 1 other entry beside");
  });

  test("leaves the library free for the engine", async () => {
    await findings();
    await findings();
  });
});
