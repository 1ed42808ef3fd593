/**
 * The chat template of a model, read from chat_template.jinja or from tokenizer_config.json (one text or a
 * named list), and what it understands, found out by rendering small conversations when the model is loaded.
 */
import { parse, tokenize } from "@huggingface/jinja";
import { GranaryError } from "../assert";
import { isObject } from "./json";
import { checkTemplate } from "./template-check";
import type { TemplateProgram } from "./template-interpreter";
import { runTemplate } from "./template-interpreter";
import type { TemplateMessage } from "./template-message";
import type { TokenizerFiles } from "./tokenizer-files";

export interface ChatTemplate {
  readonly source: string;
  readonly program: TemplateProgram;
  /** Takes content as a list of parts; otherwise the parts are joined into one text for it. */
  readonly readsContentParts: boolean;
  /** Names the role `developer`; otherwise such a message becomes a system message. */
  readonly knowsDeveloper: boolean;
}

export interface ChatTemplates {
  readonly main: ChatTemplate;
  /** For requests with tools, where the model has a template of its own for them. */
  readonly withTools: ChatTemplate | undefined;
}

/** The templates of the model, or undefined when it has none. */
export function readChatTemplates(files: TokenizerFiles): ChatTemplates | undefined {
  const given = files.chatTemplate ?? files.tokenizerConfig.chat_template;
  if (typeof given === "string") return { main: compileTemplate(given), withTools: undefined };
  if (!Array.isArray(given)) return undefined;
  const named = new Map<string, string>();
  for (const entry of given) {
    if (isObject(entry) && typeof entry.name === "string" && typeof entry.template === "string") {
      named.set(entry.name, entry.template);
    }
  }
  const main = named.get("default") ?? named.values().next().value;
  const withTools = named.get("tool_use");
  if (main === undefined) return undefined;
  return {
    main: compileTemplate(main),
    withTools: withTools === undefined ? undefined : compileTemplate(withTools),
  };
}

export function compileTemplate(source: string): ChatTemplate {
  let program: TemplateProgram;
  try {
    program = parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
  } catch (error) {
    throw new GranaryError(
      "template_invalid",
      `the chat template cannot be read: ${(error as Error).message}`,
    );
  }
  checkTemplate(program);
  return {
    source,
    program,
    readsContentParts: readsContentParts(program),
    knowsDeveloper: /\bdeveloper\b/.test(source),
  };
}

/** True when a list of one text part renders exactly as the text itself does. */
function readsContentParts(program: TemplateProgram): boolean {
  const render = (content: TemplateMessage["content"]) => {
    try {
      return runTemplate(program, {
        messages: [{ role: "user", content }],
        add_generation_prompt: true,
        bos_token: "",
        eos_token: "",
      });
    } catch {
      return undefined;
    }
  };
  const fromParts = render([{ type: "text", text: "granary" }]);
  return fromParts !== undefined && fromParts === render("granary");
}
