/**
 * Which methods a path answers, read from the router itself, for 405 and for the test that walks all routes.
 */
import { ApiError } from "./api-error";

export interface Route {
  readonly method: string;
  readonly path: string;
}

export class RouteTable {
  readonly #readRoutes: () => readonly Route[];
  #patterns: readonly { readonly pattern: RegExp; readonly methods: ReadonlySet<string> }[] | undefined;

  /** `readRoutes` is called when the first unknown path comes, that is when all routes are there. */
  constructor(readRoutes: () => readonly Route[]) {
    this.#readRoutes = readRoutes;
  }

  /** 405 where the path answers other methods, else 404. */
  missError(method: string, path: string): ApiError {
    this.#patterns ??= patternsOf(this.#readRoutes());
    const methods = this.#patterns
      .filter(({ pattern }) => pattern.test(path))
      .flatMap((entry) => [...entry.methods]);
    if (methods.length > 0) {
      return new ApiError(405, `${method} is not allowed here.`, {
        code: "method_not_allowed",
        headers: { Allow: [...new Set(methods)].join(", ") },
      });
    }
    return new ApiError(404, `Nothing is at ${path.slice(0, 200)}.`, {
      type: "not_found_error",
      code: "unknown_path",
    });
  }
}

function patternsOf(routes: readonly Route[]) {
  const byPath = Map.groupBy(routes, (route) => route.path);
  return [...byPath].map(([path, group]) => ({
    pattern: new RegExp(`^${path.split("/").map(segmentPattern).join("/")}$`),
    methods: new Set(group.map(({ method }) => (method === "WS" ? "GET" : method))),
  }));
}

function segmentPattern(segment: string): string {
  if (segment === "*") return ".+";
  if (segment.startsWith(":")) return "[^/]+";
  return segment.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
