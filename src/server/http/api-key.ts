/**
 * The key that guards every route but health: compared in constant time, refused before anything else is
 * looked at.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { ApiError } from "./api-error";

/** Routes that answer without a key. Exact paths only: whatever is spelled differently is guarded. */
export const publicPaths: ReadonlySet<string> = new Set(["/health", "/health/live", "/health/ready"]);

export class ApiKeyGuard {
  readonly #digests: readonly Uint8Array[];

  constructor(apiKeys: readonly string[]) {
    this.#digests = apiKeys.map(digestOf);
  }

  /** Throws 401 unless the request is for a public path or carries a key. */
  check(request: Request): void {
    if (this.#digests.length === 0 || publicPaths.has(pathOf(request.url))) return;
    const authorization = request.headers.get("authorization") ?? "";
    const match = /^Bearer ([^\s,]+)$/i.exec(authorization);
    if (match === null || !this.#isKnown(match[1])) throw unauthorized(authorization === "");
  }

  /** Every key is compared, so that the time says nothing about which one came close. */
  #isKnown(key: string): boolean {
    const digest = digestOf(key);
    let isKnown = false;
    for (const known of this.#digests) isKnown = timingSafeEqual(known, digest) || isKnown;
    return isKnown;
  }
}

/** The path of an absolute URL as it was sent, undecoded. */
export function pathOf(url: string): string {
  const begin = url.indexOf("/", url.indexOf("://") + 3);
  if (begin < 0) return "/";
  const end = url.slice(begin).search(/[?#]/);
  return end < 0 ? url.slice(begin) : url.slice(begin, begin + end);
}

function digestOf(key: string): Uint8Array {
  return new Uint8Array(createHash("sha256").update(key).digest());
}

function unauthorized(isMissing: boolean): ApiError {
  const message = isMissing
    ? "No API key was given; send it as 'Authorization: Bearer KEY'."
    : "The API key is not valid.";
  return new ApiError(401, message, {
    type: "authentication_error",
    code: "invalid_api_key",
    headers: { "WWW-Authenticate": 'Bearer realm="granary"' },
  });
}
