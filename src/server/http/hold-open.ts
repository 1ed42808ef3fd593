/**
 * Lifts the idle timeout from a connection while its request is being answered, however long the engine
 * stays silent, and puts it back afterwards: a connection that is kept alive must not be able to stay half-
 * open for ever.
 */
import { idleTimeoutSeconds } from "../../limits";
import type { ServerContext } from "../dependencies";

/** The part of Bun's server that is needed; absent when the app is called without a socket. */
export interface TimeoutSetter {
  timeout(request: Request, seconds: number): void;
}

/**
 * Runs `answer` without an idle timeout. An answer that is a Response goes on after its promise: it calls
 * `release` when it is over, once or more.
 */
export async function holdOpen<Answer>(
  context: Pick<ServerContext, "options">,
  server: TimeoutSetter | null,
  request: Request,
  answer: (release: () => void) => Promise<Answer>,
): Promise<Answer> {
  const seconds = context.options.idleTimeoutSeconds ?? idleTimeoutSeconds;
  const release = () => {
    if (!request.signal.aborted) server?.timeout(request, seconds);
  };
  server?.timeout(request, 0);
  try {
    const result = await answer(release);
    if (!(result instanceof Response)) release();
    return result;
  } catch (error) {
    release();
    throw error;
  }
}
