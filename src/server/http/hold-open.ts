/**
 * Lifts the idle timeout from a connection while its request is being answered, however long the engine stays silent, and puts
 * it back afterwards: a connection that is kept alive must not be able to stay half-open for ever.
 */
import { idleTimeoutSeconds } from "../../limits";
import type { ServerContext } from "../dependencies";

/** The part of Bun's server that is needed; absent when the app is called without a socket. */
export interface TimeoutSetter {
  timeout(request: Request, seconds: number): void;
}

/** Returns the function that ends the patience. */
export function holdOpen(
  context: Pick<ServerContext, "options">,
  server: TimeoutSetter | null,
  request: Request,
): () => void {
  server?.timeout(request, 0);
  const seconds = context.options.idleTimeoutSeconds ?? idleTimeoutSeconds;
  return () => {
    if (!request.signal.aborted) server?.timeout(request, seconds);
  };
}
