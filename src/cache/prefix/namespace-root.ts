/**
 * The 32 bytes in front of a tenant's hash chain. Each part is framed by a
 * tag and its length, so that no two different settings give the same bytes.
 */

export interface CacheNamespace {
  readonly adapter?: string;
  readonly salt?: string;
  readonly tenant?: string;
}

const domain = "granary-namespace-v1\0";

/** Undefined for the common namespace, in which nothing is set. */
export function namespaceRoot(namespace: CacheNamespace): Uint8Array | undefined {
  const parts = [namespace.adapter, namespace.salt, namespace.tenant];
  if (parts.every((part) => part === undefined)) return undefined;
  const hasher = new Bun.SHA256();
  const encoder = new TextEncoder();
  hasher.update(encoder.encode(domain));
  parts.forEach((part, index) => {
    if (part === undefined) return;
    const bytes = encoder.encode(part);
    const frame = new Uint8Array(5);
    frame[0] = index + 1;
    new DataView(frame.buffer).setUint32(1, bytes.length, true);
    hasher.update(frame);
    hasher.update(bytes);
  });
  return new Uint8Array(hasher.digest().buffer);
}
