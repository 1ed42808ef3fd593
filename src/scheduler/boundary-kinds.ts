/** What the end of a completed range of a prompt means for later requests. */

import type { CompletedPages } from "../cache/coordinator/request-progress";
import type { Int32List } from "../cache/core/int32-list";
import { type BoundaryKind, boundaryKind } from "../cache/prefix/prefix-cache-index";

/**
 * The two boundaries of a prompt of `size` tokens from which
 * state is worth resuming, floored to the granularity.
 */
function isEndpointBoundary(boundary: number, size: number, prefixGranularity: number): boolean {
  if (boundary <= 0) return false;
  const repeatPoint = Math.floor((size - 1) / prefixGranularity) * prefixGranularity;
  const followUpPoint = Math.floor(size / prefixGranularity) * prefixGranularity;
  return boundary === repeatPoint || boundary === followUpPoint;
}

/**
 * Kind of the boundary at `frontier` for history: a promotion
 * that was steered to, the prompt's end, or nothing special.
 */
export function historyKind(
  frontier: number,
  prefillTokens: number,
  promotionBoundary: number,
): BoundaryKind {
  if (promotionBoundary > 0 && frontier === promotionBoundary) return boundaryKind.promoted;
  return frontier === prefillTokens ? boundaryKind.endpoint : boundaryKind.chunk;
}

/**
 * Kind for state groups: a range that ends at nothing special is still an
 * endpoint when it covers the snapshot from which the same prompt, or one that
 * continues it, resumes. `size` is the prompt's, at a retraction the frontier.
 */
export function stateKind(
  completed: CompletedPages,
  boundaries: Int32List,
  size: number,
  prefixGranularity: number,
): BoundaryKind {
  if (completed.boundaryKind !== boundaryKind.chunk) return completed.boundaryKind;
  for (let i = 0; i < boundaries.length; i++) {
    const page = boundaries.items[i] / prefixGranularity;
    if (page <= completed.firstNewPage || page > completed.numPages) continue;
    if (isEndpointBoundary(boundaries.items[i], size, prefixGranularity)) return boundaryKind.endpoint;
  }
  return boundaryKind.chunk;
}
