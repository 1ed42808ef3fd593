/**
 * How much of a generation an admission pays in advance,
 * growing with every retraction so that thrashing ends.
 */
import { headroomStepTokens } from "../limits";
import type { Request } from "./request";

function openTokens(request: Request): number {
  return headroomStepTokens * (1 + request.retractionCount);
}

/** Tokens of generation that the request's next admission secures; 0 when it declared none. */
export function admissionHeadroom(request: Request): number {
  if (request.maxNewTokens === 0) return 0;
  const generated = Math.max(0, request.tokens.size - request.submittedPromptTokens);
  return Math.min(Math.max(0, request.maxNewTokens - generated), openTokens(request));
}

/**
 * True when the current admission secured everything that
 * was still to come: such a request is never a victim.
 */
export function isCovered(request: Request): boolean {
  if (request.maxNewTokens === 0) return false;
  const openAtAdmission = request.maxNewTokens - (request.prefillTokens - request.submittedPromptTokens);
  return openTokens(request) >= Math.max(0, openAtAdmission);
}
