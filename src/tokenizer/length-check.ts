/**
 * Tells early that a text has far more tokens than anybody may send, without tokenizing all of it: slices are
 * counted one after another until they exceed the limit.
 */

/** UTF-16 units of one slice. */
const sliceLength = 16 * 1024;

/** How far back from its end a slice looks for a space, where a cut changes no token of most vocabularies. */
const searchLength = 256;

/** Tokens that a cut may add at most; what a slice counts beyond them is certain. */
const cutMargin = 64;

function cutBefore(text: string, end: number): number {
  if (end >= text.length) return text.length;
  for (let at = end; at > end - searchLength; at--) {
    if (text[at] === " " || text[at] === "\n") return at;
  }
  const isLowSurrogate = (text.charCodeAt(end) & 0xfc00) === 0xdc00;
  return isLowSurrogate ? end - 1 : end;
}

/** A number of tokens that `texts` have for certain when that is above `limit`; undefined otherwise. */
export function tokensBeyond(
  texts: readonly string[],
  limit: number,
  countTokens: (text: string) => number,
): number | undefined {
  let certain = 0;
  for (const text of texts) {
    for (let begin = 0; begin < text.length; ) {
      const end = cutBefore(text, begin + sliceLength);
      certain += Math.max(0, countTokens(text.slice(begin, end)) - cutMargin);
      if (certain > limit) return certain;
      begin = end;
    }
  }
  return undefined;
}
