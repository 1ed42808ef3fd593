/**
 * Lifts the idle timeout from a connection while its request is being answered, however long the engine stays silent, and puts
 * it back afterwards: a connection that is kept alive must not be able to stay half-open for ever.
 */
import { idleTimeoutSeconds } from "../../limits";

/** The part of Bun's server that is needed; absent when the app is called without a socket. */
export interface TimeoutSetter {
  timeout(request: Request, seconds: number): void;
}

/** Returns the function that ends the patience. */
export function holdOpen(server: TimeoutSetter | null, request: Request): () => void {
  server?.timeout(request, 0);
  return () => {
    if (!request.signal.aborted) server?.timeout(request, idleTimeoutSeconds);
  };
}
