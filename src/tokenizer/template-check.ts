/**
 * Finds filters and tests of a chat template that do not exist when the model is loaded, not when the first
 * request comes.
 */
import { GranaryError } from "../assert";
import type { TemplateProgram } from "./template-interpreter";

const knownFilters = new Set(
  `abs bool capitalize default dictsort first float indent int items join last length list lower map
   rejectattr replace reverse safe selectattr sort string title tojson trim strip unique upper`.split(/\s+/),
);

const knownTests = new Set(
  `boolean callable defined equalto eq even false float in integer iterable lower mapping none number odd
   sequence string true undefined upper`.split(/\s+/),
);

/** Throws when `program` names a filter or a test that nobody knows. */
export function checkTemplate(program: TemplateProgram): void {
  visit(program);
}

function visit(node: unknown): void {
  if (Array.isArray(node)) {
    for (const item of node) visit(item);
  } else if (node instanceof Map) {
    for (const [key, value] of node) {
      visit(key);
      visit(value);
    }
  } else if (typeof node === "object" && node !== null) {
    checkNode(node as SyntaxNode);
    for (const child of Object.values(node)) visit(child);
  }
}

interface SyntaxNode {
  readonly type?: unknown;
  readonly filter?: SyntaxNode;
  readonly test?: SyntaxNode;
  readonly callee?: SyntaxNode;
  readonly value?: unknown;
}

function checkNode(node: SyntaxNode): void {
  if (node.type === "FilterExpression" || node.type === "FilterStatement") {
    const name = nameOf(node.filter);
    if (name !== undefined && !knownFilters.has(name)) {
      throw new GranaryError("template_unsupported", `the chat template uses an unknown filter: ${name}`);
    }
  }
  if (node.type === "TestExpression") {
    const name = nameOf(node.test);
    if (name !== undefined && !knownTests.has(name)) {
      throw new GranaryError("template_unsupported", `the chat template uses an unknown test: ${name}`);
    }
  }
}

/** The identifier of `name` or of `name(arguments)`. */
function nameOf(node: SyntaxNode | undefined): string | undefined {
  const identifier = node?.callee ?? node;
  return typeof identifier?.value === "string" ? identifier.value : undefined;
}
