/** What every part of one answer repeats: its id, when it began, which model speaks. */
import type { ServerContext } from "../dependencies";

export interface AnswerHead {
  readonly id: string;
  /** Unix seconds. */
  readonly created: number;
  readonly model: string;
}

export function answerHead(context: ServerContext, prefix: string): AnswerHead {
  return { id: newId(prefix), created: context.clock.unixSeconds(), model: context.model.id };
}

export function newId(prefix: string): string {
  return `${prefix}${crypto.randomUUID().replaceAll("-", "")}`;
}
