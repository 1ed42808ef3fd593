/** Tries NVIDIA's run-time compiler where it is found, and says what came of it. */
import { Nvrtc } from "./nvrtc";
import { absence } from "./toolkit-library";

const trial = { source: "__global__ void trial(int* out) { *out = 1; }", kernel: "trial" };

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
