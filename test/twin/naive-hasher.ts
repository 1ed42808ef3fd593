/** The page hash said plainly: a fresh hasher a page, hex in and out, optional keys framed at the end. */

const u32 = (value: number) => new Uint8Array(new Uint32Array([value >>> 0]).buffer);

/** 64 hex digits of a page behind a prior digest. */
export function hashPage(
  tokens: readonly number[],
  prior: string | undefined,
  keys: readonly string[] = [],
): string {
  const hasher = new Bun.CryptoHasher("sha256");
  const priorBytes = prior === undefined ? new Uint8Array(0) : Uint8Array.from(Buffer.from(prior, "hex"));
  hasher.update(u32(priorBytes.length));
  hasher.update(priorBytes);
  hasher.update(u32(tokens.length));
  for (const token of tokens) hasher.update(u32(token));
  if (keys.length > 0) hasher.update(u32(keys.length));
  for (const key of keys) {
    const bytes = new TextEncoder().encode(key);
    hasher.update(u32(bytes.length));
    hasher.update(bytes);
  }
  return hasher.digest("hex");
}
