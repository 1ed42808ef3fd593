/** Functions of the project's TypeScript, from the compiler's own parser. */
import { join } from "node:path";
import type { Node } from "typescript/unstable/ast";
import * as is from "typescript/unstable/ast/is";
import { API } from "typescript/unstable/async";
import { projectRoot } from "./source-files";

export interface FunctionInFile {
  readonly path: string;
  readonly line: number;
  readonly length: number;
  /** The callback of describe, which groups tests and computes nothing. */
  readonly isTestGroup: boolean;
}

function isFunction(node: Node): boolean {
  return (
    is.isFunctionDeclaration(node) ||
    is.isMethodDeclaration(node) ||
    is.isArrowFunction(node) ||
    is.isFunctionExpression(node) ||
    is.isConstructorDeclaration(node) ||
    is.isGetAccessorDeclaration(node) ||
    is.isSetAccessorDeclaration(node)
  );
}

function isDescribe(node: Node): boolean {
  const { parent } = node;
  return (
    parent !== undefined && is.isCallExpression(parent) && /^describe\b/.test(parent.expression.getText())
  );
}

/** All functions of these files; undefined for a file that the compiler does not know. */
export async function functionsOf(paths: readonly string[]): Promise<readonly FunctionInFile[]> {
  const api = new API({ cwd: projectRoot });
  try {
    const snapshot = await api.updateSnapshot({ openProject: join(projectRoot, "tsconfig.json") });
    const project = snapshot.getProjects()[0];
    if (project === undefined) throw new Error("the compiler found no project");
    const found: FunctionInFile[] = [];
    for (const path of paths) {
      const source = await project.program.getSourceFile(join(projectRoot, path));
      if (source === undefined) continue;
      const lineAt = (position: number) => source.text.slice(0, position).split("\n").length;
      const visit = (node: Node): void => {
        if (isFunction(node)) {
          const line = lineAt(node.getStart(source));
          found.push({ path, line, length: lineAt(node.end) - line + 1, isTestGroup: isDescribe(node) });
        }
        node.forEachChild(visit);
      };
      visit(source);
    }
    return found;
  } finally {
    await api.close();
  }
}
