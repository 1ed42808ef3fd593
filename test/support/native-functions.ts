/**
 * Functions of C++ and CUDA sources, found by their braces.
 * Knows no grammar: good enough for code in one style.
 */
import { codeWithoutText } from "./code-without-text";

export interface NativeFunction {
  /** Where its head begins. */
  readonly line: number;
  readonly length: number;
}

/** A head that ends like "name(…)" and is no statement. */
function isFunctionHead(head: string): boolean {
  const endsLikeOne = /\)\s*(const|noexcept|override|mutable|->\s*[\w:<>*& ]+)?\s*$/.test(head);
  return endsLikeOne && !/^(if|else|for|while|switch|do|return|catch)\b/.test(head);
}

export function nativeFunctions(source: string): readonly NativeFunction[] {
  const functions: NativeFunction[] = [];
  const open: { readonly head: string; readonly line: number }[] = [];
  let head = "";
  let headLine = 0;
  let line = 1;
  let parentheses = 0;
  for (const character of withoutDirectives(codeWithoutText(source))) {
    if (character === "\n") line++;
    if (character === "(") parentheses++;
    if (character === ")") parentheses--;
    const isBoundary = character === "{" || character === "}" || (character === ";" && parentheses === 0);
    if (!isBoundary) {
      if (head.trim() === "" && character.trim() !== "") headLine = line;
      head += character;
      continue;
    }
    if (character === "{") {
      // A lambda's body stands inside the parentheses of a call.
      open.push({ head: head.trim(), line: headLine });
      parentheses = 0;
    }
    const closed = character === "}" ? open.pop() : undefined;
    if (closed !== undefined && isFunctionHead(closed.head)) {
      functions.push({ line: closed.line, length: line - closed.line + 1 });
    }
    head = "";
  }
  return functions;
}

/** Lines of the preprocessor, continued ones too, blanked out. */
function withoutDirectives(code: string): string {
  return code.replace(/^[ \t]*#(?:.*\\\n)*.*$/gm, (text) => text.replace(/[^\n]/g, " "));
}
