/** Opens the socket for an app and closes it gracefully. */
import { GranaryError, messageOf } from "../assert";
import { idleTimeoutSeconds } from "../limits";
import type { GranaryServer } from "./server";

export interface ListenOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Overrides the limit of the same name, for tests that cannot wait so long. */
  readonly idleTimeoutSeconds?: number;
}

export interface ListeningServer {
  readonly url: string;
  readonly port: number;
  /** Stops accepting; open answers go on until they end. With `force` they are cut. */
  stop(force?: boolean): Promise<void>;
}

export function listen(app: GranaryServer, options: ListenOptions): ListeningServer {
  const { host, port } = options;
  try {
    app.listen({
      hostname: host,
      port,
      // A port that another server has is an error, not a share of its clients.
      reusePort: false,
      development: false,
      idleTimeout: options.idleTimeoutSeconds ?? idleTimeoutSeconds,
      // The app refuses large bodies itself, with an answer that clients can read.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    });
  } catch (error) {
    // Bun's own words name neither the address nor, for one that is not this machine's, the trouble.
    const reason = messageOf(error);
    throw new GranaryError("listen_failed", `cannot listen on ${host}, port ${port}: ${reason}`);
  }
  const { server } = app;
  if (server === null) throw new Error("the server did not start");
  const boundPort = server.port ?? port;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`,
    port: boundPort,
    async stop(force = false) {
      await server.stop(force);
    },
  };
}
