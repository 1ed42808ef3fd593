/** The key guards every door: the test walks the router's own table, so a new route cannot be forgotten. */
import { describe, expect, test } from "bun:test";
import { publicPaths } from "../../src/server/http/api-key";
import { bodyOf, serverUnderTest } from "./server-under-test";

const server = serverUnderTest({ options: { apiKeys: ["secret-key", "other-key"] } });
const routes = server.app.routes.map(({ method, path }) => ({
  method: method === "WS" ? "GET" : method,
  path: path.replace("*", "x"),
}));

const wrongKeys: readonly (readonly [string, Record<string, string>])[] = [
  ["none", {}],
  ["a wrong one", { Authorization: "Bearer wrong" }],
  ["an empty one", { Authorization: "Bearer " }],
  ["the key and a space in it", { Authorization: "Bearer secret-key x" }],
  ["another scheme", { Authorization: "Basic secret-key" }],
  ["two keys in one header", { Authorization: "Bearer wrong, Bearer secret-key" }],
  ["a beginning of the key", { Authorization: "Bearer secret" }],
];

describe("every route of the table", () => {
  test("is there", () => {
    expect(routes.length).toBeGreaterThan(12);
    for (const path of publicPaths) expect(routes.some((route) => route.path === path)).toBe(true);
  });

  test.each(wrongKeys)("answers 401 to %s, but for health", async (_name, headers) => {
    for (const { method, path } of routes) {
      for (const spelling of [
        path,
        `${path}/`,
        `/${path}`,
        path.toUpperCase(),
        `${path}?api_key=secret-key`,
      ]) {
        const response = await server.request(spelling, { method, headers });
        const isPublic = publicPaths.has(spelling.split("?")[0]);
        if (isPublic) expect(response.status).not.toBe(401);
        else {
          expect({ spelling, method, status: response.status }).toEqual({ spelling, method, status: 401 });
          expect(response.headers.get("www-authenticate")).toContain("Bearer");
        }
      }
    }
  });

  test("answers 401 to paths that do not exist, so that nobody can map them", async () => {
    for (const path of ["/nothing", "/v1/%68ealth", "/health/../v1/models", "/openapi", "//health"]) {
      expect((await server.get(path)).status).toBe(401);
    }
  });

  test("opens with a key, whatever the case of the scheme", async () => {
    for (const authorization of ["Bearer secret-key", "bearer other-key"]) {
      expect((await server.get("/v1/models", { Authorization: authorization })).status).toBe(200);
    }
  });

  test("is told in the shape of every other error", async () => {
    const { error } = await bodyOf(await server.get("/v1/models"));
    expect(error).toMatchObject({ type: "authentication_error", code: "invalid_api_key", param: null });
    expect(JSON.stringify(error)).not.toContain("secret-key");
  });
});

describe("a WebSocket", () => {
  test("is refused before the upgrade without a key", async () => {
    const listening = server.listen();
    const open = (headers: Record<string, string>) => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const socket = new WebSocket(`${listening.url.replace("http", "ws")}/v1/responses`, {
        headers,
      } as never);
      socket.onopen = () => resolve("open");
      socket.onerror = () => resolve("refused");
      return promise.finally(() => socket.close());
    };
    expect(await open({})).toBe("refused");
    expect(await open({ Authorization: "Bearer wrong" })).toBe("refused");
    expect(await open({ Authorization: "Bearer secret-key" })).toBe("open");
    await listening.stop(true);
  });
});
