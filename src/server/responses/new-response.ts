/** The events of a new response, with its ids. */
import { newId } from "../answers/answer-head";
import type { ServerContext } from "../dependencies";
import type { ResponseBody } from "../schema/response";
import { ResponseEvents } from "./response-events";

export function newResponse(
  context: ServerContext,
  body: ResponseBody,
  withLogprobs: boolean,
): ResponseEvents {
  const identity = {
    id: newId("resp_"),
    messageId: newId("msg_"),
    createdAt: context.clock.unixSeconds(),
    model: context.model.id,
    body,
    withLogprobs,
  };
  const format = { vocabulary: context.tokenizer.vocabulary, tokensAsIds: false };
  return new ResponseEvents(identity, format, context.clock.unixSeconds);
}
