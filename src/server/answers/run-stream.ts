/** Runs a generation for a client that reads server-sent events. */
import type { ServerContext } from "../dependencies";
import type { ChoiceUpdate } from "../generation/choice-assembler";
import type { GenerationRequest } from "../generation/generation";
import { Generation } from "../generation/generation";
import type { ApiError } from "../http/api-error";
import { toApiError } from "../http/error-handler";
import { RequestTimer } from "../metrics/request-timer";
import { SseStream } from "../stream/sse-stream";

/** Writes the events of one kind of answer, each ending in an empty line. */
export interface StreamFormat {
  /** Events for news of choice `index`; empty when there is nothing to say yet. */
  update(index: number, update: ChoiceUpdate, generation: Generation): string;
  /** Events behind the last choice's end, the closing one included. */
  end(generation: Generation): string;
  /** The last event of a stream that fails on its way, where the kind of answer has one of its own. */
  failure?(error: ApiError): string;
}

/** The streamed answer. `onClose` is called when it is over, however it ended. */
export function runStream(
  context: ServerContext,
  request: GenerationRequest,
  format: StreamFormat,
  signal: AbortSignal,
  onClose: () => void,
): Promise<Response> {
  const generation: Generation = new Generation(
    context,
    request,
    new RequestTimer(context.metrics, context.clock),
    {
      onUpdate: (index, update) => {
        const events = format.update(index, update, generation);
        if (events !== "") stream.write(events);
      },
      onEnd: () => stream.end(format.end(generation)),
      onError: (error) => stream.fail(error, format.failure?.(error)),
    },
  );
  const onAbort = () => stream.cancel();
  const stream = new SseStream({
    heartbeat: context.heartbeat,
    onClose: () => {
      signal.removeEventListener("abort", onAbort);
      generation.abort();
      onClose();
    },
  });
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) stream.cancel();
  else startOrFail(context, generation, stream);
  return stream.response;
}

function startOrFail(context: ServerContext, generation: Generation, stream: SseStream): void {
  try {
    generation.start();
  } catch (error) {
    stream.fail(toApiError("UNKNOWN", error, context.log));
  }
}
