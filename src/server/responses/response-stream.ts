/** A response as server-sent events. */
import type { StreamFormat } from "../answers/run-stream";
import type { ChoiceUpdate } from "../generation/choice-assembler";
import type { Generation } from "../generation/generation";
import type { ApiError } from "../http/api-error";
import type { ResponseEvent, ResponseEvents } from "./response-events";

export class ResponseStream implements StreamFormat {
  readonly #events: ResponseEvents;
  #hasBegun = false;

  constructor(events: ResponseEvents) {
    this.#events = events;
  }

  update(_index: number, update: ChoiceUpdate): string {
    const begin = this.#hasBegun ? [] : this.#events.begin();
    this.#hasBegun = true;
    return toText([...begin, ...this.#events.update(update)]);
  }

  end(generation: Generation): string {
    return toText(this.#events.end(generation.usage));
  }

  failure(error: ApiError): string {
    return toText(this.#events.fail(error));
  }
}

function toText(events: readonly ResponseEvent[]): string {
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}
