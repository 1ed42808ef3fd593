/** Looks for the parts of NVIDIA's toolkit that are found at run time and tries them. */
import { type CublasLt, searchCublasLt } from "./cublaslt";
import { Nvrtc } from "./nvrtc";

const trial = { source: "__global__ void trial(int* out) { *out = 1; }", kernel: "trial" };

/** Tells a name that nobody gave from one that leads nowhere, and a broken file from none. */
function absence(variable: string, given: string | undefined, faults: readonly string[]): string {
  const subject = given === undefined || given === "" ? "not found" : `${variable} names no usable library`;
  return faults.length === 0 ? subject : `${subject} (${faults.join("; ")})`;
}

/** Version and place of the run-time compiler and whether it works for a card, or why there is none. */
export function findNvrtc(given: string | undefined, architecture: string): string {
  const { library: compiler, faults } = Nvrtc.search(given);
  if (compiler === undefined)
    return `${absence("GRANARY_NVRTC", given, faults)}: only kernels compiled ahead of time are used`;
  const found = `${compiler.version} (${compiler.path})`;
  try {
    compiler.compile({ ...trial, options: [`--gpu-architecture=${architecture}`] });
    return `${found}, compiles for ${architecture}`;
  } catch (error) {
    return `${found}, unusable: ${(error as Error).message.replaceAll("\n", " ")}`;
  }
}

/** NVIDIA's products, or undefined; and their version and place, or why there are none. */
export function findCublasLt(given: string | undefined): {
  readonly library: CublasLt | undefined;
  readonly text: string;
} {
  const { library, faults } = searchCublasLt(given);
  const text =
    library === undefined
      ? `${absence("GRANARY_CUBLASLT", given, faults)}: our own products are used`
      : `${library.version} (${library.name})`;
  return { library, text };
}
