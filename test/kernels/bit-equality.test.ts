/**
 * A row's bits do not depend on what it is computed with: not on the other rows of its launch, the threads or
 * the instruction set. A cold prompt, a chunked one and one token at a time therefore agree to the last bit.
 */
import { describe, expect, test } from "bun:test";
import { kernelCases } from "./cases";
import { type Outputs, runCaseInPieces } from "./cases/kernel-case";
import { firstUnequalOutput } from "./support/compare";
import {
  availableInstructionSets,
  type CpuOptions,
  loadCpuLibrary,
  openCpuDevice,
} from "./support/open-device";
import { Random } from "./support/random";

const library = await loadCpuLibrary();
const instructionSets = availableInstructionSets(library);

/** Sizes of launches; the last is repeated to the end of the rows. */
const random = new Random(11);
const randomSizes = Array.from({ length: 40 }, () => random.integer(1, 23));
const splits: readonly (readonly number[])[] = [
  [100],
  [1],
  [2],
  [7],
  [16],
  [1, 2, 7, 16],
  [60, 1],
  randomSizes,
];

/** Outputs of every case for one machine setting, split by split. */
function runAll(options: CpuOptions, chosenSplits: readonly (readonly number[])[]): Outputs[][] {
  const device = openCpuDevice(library, options);
  try {
    return kernelCases.map((kernelCase) =>
      chosenSplits.map((sizes) => runCaseInPieces(kernelCase, device, "float32", sizes)),
    );
  } finally {
    device.close();
  }
}

const wholeOnOneThread = runAll({ numThreads: 1, isa: "avx2" }, [[Number.MAX_SAFE_INTEGER]]);

for (const isa of instructionSets) {
  for (const numThreads of [1, 2, 3]) {
    const outputs = runAll({ numThreads, isa }, splits);
    describe(`${isa} on ${numThreads} threads gives the bits of one thread and one launch`, () => {
      kernelCases.forEach((kernelCase, c) => {
        test(kernelCase.name, () => {
          splits.forEach((sizes, s) => {
            const unequal = firstUnequalOutput(
              outputs[c]?.[s] as Outputs,
              wholeOnOneThread[c]?.[0] as Outputs,
            );
            expect(unequal && `${unequal} in launches of ${sizes.slice(0, 6)}`).toBeUndefined();
          });
        });
      });
    });
  }
}

test("this machine ran every instruction set that it has", () => {
  expect(instructionSets.length).toBeGreaterThan(0);
});
