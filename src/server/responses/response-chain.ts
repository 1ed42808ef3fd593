/**
 * The conversations behind the responses of one connection, by response id, so that a later request can go
 * on from any of them. The oldest are forgotten when there are too many or their text grows too long.
 */
import { maxChainedResponses, maxChainTextLength } from "../../limits";
import type { JsonObject } from "../../tokenizer/json";

interface Link {
  /** The whole conversation; the messages are shared with the links it goes on from. */
  readonly messages: readonly JsonObject[];
  /** Length of the text that this link added. */
  readonly addedLength: number;
}

export class ResponseChain {
  readonly #links = new Map<string, Link>();
  #textLength = 0;

  get size(): number {
    return this.#links.size;
  }

  messagesOf(responseId: string): readonly JsonObject[] | undefined {
    return this.#links.get(responseId)?.messages;
  }

  /** Remembers that `responseId` stands for `earlier` followed by `added`. */
  add(responseId: string, earlier: readonly JsonObject[], added: readonly JsonObject[]): void {
    const link = { messages: [...earlier, ...added], addedLength: JSON.stringify(added).length };
    this.#links.set(responseId, link);
    this.#textLength += link.addedLength;
    for (const [oldest, { addedLength }] of this.#links) {
      if (this.#links.size <= maxChainedResponses && this.#textLength <= maxChainTextLength) break;
      this.#links.delete(oldest);
      this.#textLength -= addedLength;
    }
  }
}
