/** Code with its comments and strings blanked out, so that a word in a sentence is no word of the program. */

type State = "code" | "lineComment" | "blockComment" | "text";

const quotes = new Set(["'", '"', "`"]);

/**
 * Same length, same lines. Made for TypeScript and C++ as this project formats them: a quote opens a text
 * unless it stands between digits, and a template's inserted expressions count as text.
 */
export function codeWithoutText(source: string): string {
  let state: State = "code";
  let quote = "";
  let out = "";
  for (let i = 0; i < source.length; i++) {
    const character = source[i] as string;
    const pair = source.slice(i, i + 2);
    if (character === "\n") {
      if (state === "lineComment" || (state === "text" && quote !== "`")) state = "code";
      out += "\n";
    } else if (state === "code") {
      const opensText = quotes.has(character) && !(character === "'" && /\d/.test(source[i - 1] ?? ""));
      if (pair === "//") state = "lineComment";
      else if (pair === "/*") state = "blockComment";
      else if (opensText) state = "text";
      if (opensText) quote = character;
      out += state === "code" || state === "text" ? character : " ";
    } else if (state === "blockComment" && pair === "*/") {
      state = "code";
      out += "  ";
      i++;
    } else if (state === "text" && character === "\\") {
      out += source[i + 1] === "\n" ? " " : "  ";
      if (source[i + 1] !== "\n") i++;
    } else if (state === "text" && character === quote) {
      state = "code";
      out += character;
    } else out += " ";
  }
  return out;
}
