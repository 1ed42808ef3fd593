/**
 * The tokenizer of the served model: prompts and conversations to ids, ids to text. The one door into this
 * folder.
 */
import { GranaryError } from "../assert";
import { maxInlineTokenizeLength } from "../limits";
import type { PromptPiece } from "./added-tokens";
import { toTemplateMessages } from "./chat-messages";
import type { ChatTemplate, ChatTemplates } from "./chat-template";
import { readChatTemplates } from "./chat-template";
import { readEndTokens, tokenText } from "./end-tokens";
import type { JsonObject, JsonValue } from "./json";
import { LiteralGuard } from "./literal-guard";
import { LongTextEncoder } from "./long-text-encoder";
import { readPromptPrefix } from "./prompt-prefix";
import { runTemplate } from "./template-interpreter";
import { TextEncoding } from "./text-encoder";
import { collectTexts, mapTexts } from "./text-tree";
import { TokenBytes } from "./token-bytes";
import { readTokenDecoder } from "./token-decoder";
import type { TokenizerFiles } from "./tokenizer-files";

/** A conversation to be rendered. */
export interface ChatPrompt {
  readonly messages: readonly JsonObject[];
  readonly tools?: readonly JsonObject[];
  readonly addGenerationPrompt: boolean;
  /** Further variables of the template, as the request gave them. */
  readonly templateVariables?: JsonObject;
}

export interface ModelTokenizerOptions {
  /** Leads to tokenizer-worker.ts; absent, every text is tokenized on the caller's thread. */
  readonly workerUrl?: string | URL;
}

export class ModelTokenizer {
  /** Ids that end a generation, ascending. */
  readonly endTokens: readonly number[];
  readonly vocabulary: TokenBytes;
  readonly #encoding: TextEncoding;
  readonly #guard: LiteralGuard;
  readonly #prefix: readonly number[];
  readonly #templates: ChatTemplates | undefined;
  readonly #namedTokens: { readonly bos_token: string; readonly eos_token: string };
  readonly #worker: LongTextEncoder | undefined;

  constructor(files: TokenizerFiles, options: ModelTokenizerOptions = {}) {
    const { tokenizer, tokenizerConfig } = files;
    const encoding = new TextEncoding(tokenizer, tokenizerConfig);
    const idOf = (token: string) => encoding.idOf(token);
    this.#encoding = encoding;
    this.#guard = new LiteralGuard(encoding.addedTokens, encoding.splitter);
    this.#prefix = readPromptPrefix(tokenizer, tokenizerConfig, idOf);
    this.#templates = readChatTemplates(files);
    this.#namedTokens = {
      bos_token: tokenText(tokenizerConfig, "bos_token") ?? "",
      eos_token: tokenText(tokenizerConfig, "eos_token") ?? "",
    };
    this.endTokens = readEndTokens(files, idOf);
    this.vocabulary = new TokenBytes(
      readTokenDecoder(tokenizer.decoder),
      (id) => encoding.tokenOf(id),
      encoding.addedTokens,
    );
    this.#worker =
      options.workerUrl === undefined
        ? undefined
        : new LongTextEncoder(options.workerUrl, tokenizer, tokenizerConfig);
  }

  get hasChatTemplate(): boolean {
    return this.#templates !== undefined;
  }

  /**
   * Ids of a plain prompt, with the tokens that open every prompt unless the text brings its own. Such a
   * prompt is the client's to shape: literals of special tokens in it are these tokens. `workLength` is the
   * length of all that the caller is about to tokenize, where this text is only one of several. A long text
   * that has more than `limit` tokens is refused before all of it is tokenized.
   */
  async encodePrompt(
    text: string,
    addSpecialTokens = true,
    workLength = text.length,
    limit = Number.MAX_SAFE_INTEGER,
  ): Promise<Int32Array> {
    const wellFormed = text.toWellFormed();
    const worker = this.#workerFor(workLength);
    const ids =
      worker === undefined
        ? this.#encoding.encodeText(wellFormed)
        : await worker.encodeText(wellFormed, limit);
    return this.#finish(ids, addSpecialTokens);
  }

  /** Ids of a conversation. Nothing that a message says becomes a special token. */
  async encodeChat(
    chat: ChatPrompt,
    addSpecialTokens = true,
    limit = Number.MAX_SAFE_INTEGER,
  ): Promise<Int32Array> {
    const pieces = this.renderChat(chat);
    let length = 0;
    for (const piece of pieces) length += typeof piece === "string" ? piece.length : 1;
    const worker = this.#workerFor(length);
    const ids =
      worker === undefined ? this.#encoding.encodePieces(pieces) : await worker.encodePieces(pieces, limit);
    return this.#finish(ids, addSpecialTokens);
  }

  /** The rendered conversation, cut at the template's own special tokens. */
  renderChat(chat: ChatPrompt): PromptPiece[] {
    const template = this.#templateFor(chat);
    const input = {
      ...chat.templateVariables,
      messages: toTemplateMessages(chat.messages, template),
      ...(chat.tools === undefined ? {} : { tools: chat.tools }),
    } as unknown as JsonValue;
    const texts = collectTexts(input);
    const mark = this.#guard.pickMark([template.source, ...texts]);
    const guarded = mapTexts(input, (text) => this.#guard.protect(text.toWellFormed(), mark)) as JsonObject;
    const rendered = runTemplate(template.program, {
      ...guarded,
      ...this.#namedTokens,
      add_generation_prompt: chat.addGenerationPrompt,
    });
    return this.#encoding.splitter.split(rendered, (piece) => piece.replaceAll(mark, ""));
  }

  close(): void {
    this.#worker?.close();
  }

  #templateFor(chat: ChatPrompt): ChatTemplate {
    if (this.#templates === undefined) {
      throw new GranaryError(
        "chat_template_missing",
        "this model has no chat template; use /v1/completions with a prompt of your own",
      );
    }
    const { main, withTools } = this.#templates;
    return chat.tools !== undefined && withTools !== undefined ? withTools : main;
  }

  /** Undefined where the text is short enough for the caller's thread, or there is no other. */
  #workerFor(length: number): LongTextEncoder | undefined {
    return length > maxInlineTokenizeLength ? this.#worker : undefined;
  }

  #finish(ids: ArrayLike<number>, addSpecialTokens: boolean): Int32Array {
    const isPrefixed = !addSpecialTokens || this.#prefix.length === 0 || ids[0] === this.#prefix[0];
    if (isPrefixed) return ids instanceof Int32Array ? ids : Int32Array.from(ids);
    const result = new Int32Array(this.#prefix.length + ids.length);
    result.set(this.#prefix);
    result.set(ids, this.#prefix.length);
    return result;
  }
}
