/** The prompts of a completion: one or several, as text or as token ids. */
import type { ServerContext } from "../dependencies";
import { invalidParam } from "../http/api-error";
import { encodedWithin } from "../parameters/prompt-length";

export type GivenPrompt = string | readonly number[];

/** The prompts of a request as a list; never empty. */
export function listPrompts(
  prompt: string | readonly string[] | readonly number[] | readonly (readonly number[])[],
): readonly GivenPrompt[] {
  if (typeof prompt === "string") return [prompt];
  if (prompt.length === 0) throw invalidParam("prompt", "The prompt is empty: it has no tokens.");
  return typeof prompt[0] === "number"
    ? [prompt as readonly number[]]
    : (prompt as readonly string[] | readonly (readonly number[])[]);
}

export async function tokenizePrompts(
  context: ServerContext,
  prompts: readonly GivenPrompt[],
  addSpecialTokens: boolean,
): Promise<Int32Array[]> {
  // Many short texts hold the thread up as long as one long text does.
  const { tokenizer, engine } = context;
  const totalLength = prompts.reduce(
    (sum, prompt) => sum + (typeof prompt === "string" ? prompt.length : 0),
    0,
  );
  const result: Int32Array[] = [];
  for (const prompt of prompts) {
    if (typeof prompt === "string") {
      const { maxModelLen } = engine.limits;
      const ids = tokenizer.encodePrompt(prompt, addSpecialTokens, totalLength, maxModelLen);
      result.push(await encodedWithin("prompt", ids));
    } else result.push(checkTokenIds(prompt, engine.limits.vocabSize, "prompt"));
  }
  return result;
}

/** Token ids are taken as they are; nothing is put in front of them. */
export function checkTokenIds(ids: readonly number[], vocabSize: number, param: string): Int32Array {
  for (const id of ids) {
    if (!(id >= 0 && id < vocabSize)) {
      throw invalidParam(
        param,
        `${param} holds ${id}, which is no token of this model (0 to ${vocabSize - 1}).`,
      );
    }
  }
  return Int32Array.from(ids);
}
