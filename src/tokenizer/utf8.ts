/** The one question about UTF-8 that streaming asks: how much of the end may still become a character. */

/**
 * Bytes at the end of `bytes` that begin a character and lack its rest; 0 when nothing more can change the
 * text.
 */
export function incompleteTailLength(bytes: Uint8Array): number {
  const longest = Math.min(3, bytes.length);
  for (let length = 1; length <= longest; length++) {
    const lead = bytes[bytes.length - length];
    if (lead < 0x80) return 0;
    if (lead < 0xc0) continue;
    return isPossibleStart(bytes, bytes.length - length) ? length : 0;
  }
  return 0;
}

/** True when the bytes from `begin` to the end are a proper beginning of one well-formed character. */
function isPossibleStart(bytes: Uint8Array, begin: number): boolean {
  const lead = bytes[begin];
  const length = bytes.length - begin;
  const characterLength = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || length >= characterLength) return false;
  if (length === 1) return true;
  const second = bytes[begin + 1];
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second < 0xa0;
  if (lead === 0xf0) return second >= 0x90;
  if (lead === 0xf4) return second < 0x90;
  return true;
}
