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
  const defaults = context.options.samplingDefaults;
  const identity = {
    id: newId("resp_"),
    messageId: newId("msg_"),
    createdAt: context.clock.unixSeconds(),
    model: context.model.id,
    body: {
      ...body,
      temperature: body.temperature ?? defaults?.temperature ?? 1,
      top_p: body.top_p ?? defaults?.top_p ?? 1,
    },
    withLogprobs,
  };
  const format = { vocabulary: context.tokenizer.vocabulary, tokensAsIds: false };
  return new ResponseEvents(identity, format, context.clock.unixSeconds);
}
