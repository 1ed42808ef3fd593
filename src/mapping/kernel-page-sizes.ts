/**
 * Which page sizes the attention kernels step by, and the choice
 * for a group. Never derived from the prefix granularity.
 */
import { GranaryError } from "../assert";

/** Page sizes in tokens that flexible attention kernels take, largest first. */
const flexiblePageSizes = [128, 64, 32, 16] as const;

export interface KernelPageRequest {
  readonly groupId: string;
  readonly blockGranularity: number;
  /** The CPU library reads a whole block as one page. */
  readonly device: "cpu" | "cuda";
  /** Configuration override; must divide the block's span. */
  readonly override?: number | undefined;
}

/**
 * Tokens of a kernel page for one group; throws, naming the group, when no supported size divides its blocks.
 */
export function kernelPageSizeFor(request: KernelPageRequest): number {
  const { groupId, blockGranularity, override } = request;
  if (override !== undefined) {
    if (override > 0 && blockGranularity % override === 0) return override;
    throw new GranaryError(
      "invalid_page_size",
      `kernel page size ${override} does not divide a block of '${groupId}': ${blockGranularity} tokens`,
    );
  }
  if (request.device === "cpu") return blockGranularity;
  const size = flexiblePageSizes.find((candidate) => blockGranularity % candidate === 0);
  if (size !== undefined) return size;
  throw new GranaryError(
    "invalid_page_size",
    `cache group '${groupId}' has blocks of ${blockGranularity} tokens, but kernels need a multiple of 16`,
  );
}
