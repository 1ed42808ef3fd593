/** What one engine took of a device: by purpose for the user, in whole for giving it back. */
import type { Address, Device } from "../../ffi/device";

const mebibyte = 2 ** 20;

/** Purposes as their askers word them, gathered under the words a user knows. */
const categories: readonly (readonly [RegExp, string])[] = [
  [/^weight/, "weights"],
  [/^the cache arena/, "cache"],
  [/^activations/, "activations"],
];

export class MemoryLedger {
  readonly #device: Device;
  readonly #before: ReadonlySet<Address>;

  /** Counts what is allocated from here on. */
  constructor(device: Device) {
    this.#device = device;
    this.#before = new Set(device.allocations.keys());
  }

  /**
   * One line: bytes by category, and what a GPU itself says is in use. Host memory is not all ours, and what
   * we asked for is not all in use.
   */
  summary(mappedWeightBytes: number): string {
    const sums = new Map<string, number>();
    for (const [address, { bytes, purpose }] of this.#device.allocations) {
      if (this.#before.has(address)) continue;
      const category = categories.find(([pattern]) => pattern.test(purpose))?.[1] ?? "tables and sampling";
      sums.set(category, (sums.get(category) ?? 0) + bytes);
    }
    const parts = [...sums].map(([category, bytes]) => `${category} ${(bytes / mebibyte).toFixed(1)}`);
    if (mappedWeightBytes > 0) parts.push(`mapped weights ${(mappedWeightBytes / mebibyte).toFixed(1)}`);
    if (this.#device.kind === "cpu") return `memory in MiB: ${parts.join(", ")}`;
    const { totalBytes, freeBytes } = this.#device.info();
    const used = ((totalBytes - freeBytes) / mebibyte).toFixed(0);
    return `memory in MiB: ${parts.join(", ")}; ${used} of ${(totalBytes / mebibyte).toFixed(0)} in use`;
  }

  release(): void {
    this.#device.synchronize();
    for (const address of [...this.#device.allocations.keys()]) {
      if (!this.#before.has(address)) this.#device.free(address);
    }
  }
}
