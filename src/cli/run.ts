/** `granary run "prompt"`: one answer on standard output from an engine in this process. */
import { GranaryError } from "../assert";
import { unpackChunks } from "../engine/chunk-codec";
import type { Engine } from "../engine/engine";
import { loadEngine } from "../engine/load-engine";
import type { EngineMessage, EngineRequest, TokenChunk } from "../engine/protocol";
import type { SamplingDefaults } from "../server/parameters/sampling-defaults";
import { IncrementalDetokenizer } from "../tokenizer/detokenizer";
import { ModelTokenizer } from "../tokenizer/model-tokenizer";
import { engineOptions } from "./engine-setup";
import { locateModel, readModelTexts, samplingDefaults } from "./model-source";
import type { FlagValues } from "./parse-flags";
import { ProgressLine } from "./progress";
import type { Runtime } from "./runtime";

async function encode(tokenizer: ModelTokenizer, prompt: string, isRaw: boolean): Promise<Int32Array> {
  if (isRaw || !tokenizer.hasChatTemplate) return tokenizer.encodePrompt(prompt);
  const messages = [{ role: "user", content: prompt }];
  return tokenizer.encodeChat({ messages, addGenerationPrompt: true }, false);
}

function requestOf(
  tokens: Int32Array,
  flags: FlagValues,
  defaults: SamplingDefaults,
  maxModelLen: number,
): EngineRequest {
  if (tokens.length >= maxModelLen) {
    throw new GranaryError(
      "context_length_exceeded",
      `the prompt has ${tokens.length} of ${maxModelLen} tokens`,
    );
  }
  return {
    id: 1,
    tokens,
    numChoices: 1,
    sampling: {
      temperature: flags.number("temperature") ?? defaults.temperature ?? 1,
      topP: defaults.top_p ?? 1,
      topK: defaults.top_k ?? 0,
      minP: defaults.min_p ?? 0,
      repetitionPenalty: defaults.repetition_penalty ?? 1,
      presencePenalty: 0,
      frequencyPenalty: 0,
    },
    stop: {
      maxTokens: Math.min(flags.required<number>("max-tokens"), maxModelLen - tokens.length),
      minTokens: 0,
      ignoreEos: false,
      stopTokenIds: [],
    },
  };
}

export async function runPrompt(
  flags: FlagValues,
  positionals: readonly string[],
  runtime: Runtime,
): Promise<number> {
  const [prompt, ...others] = positionals;
  if (prompt === undefined || others.length > 0)
    throw new GranaryError("usage", "granary run takes one prompt");
  const model = locateModel(flags, runtime);
  const texts = readModelTexts(model.directory);
  const tokenizer = new ModelTokenizer(texts);
  const defaults = samplingDefaults(flags, texts);
  const text = new IncrementalDetokenizer(tokenizer.vocabulary, {
    skipSpecialTokens: true,
    atTextStart: true,
  });
  const progress = new ProgressLine(runtime);
  const random = new Uint32Array(1);
  let failure: string | undefined;
  let isDone = false;
  const take = (chunk: TokenChunk) => {
    for (const token of chunk.tokens) if (token !== chunk.stopTokenId) runtime.out(text.push(token));
    failure = chunk.error;
    isDone = chunk.finish !== undefined;
  };
  const post = (message: EngineMessage) => {
    if (message.kind !== "step") return;
    unpackChunks(message.packed, take);
    message.chunks.forEach(take);
  };
  const engine: Engine = loadEngine(
    engineOptions(flags, runtime, model, tokenizer.endTokens),
    { post, clock: runtime.clockMs, randomUint32: () => crypto.getRandomValues(random)[0] as number },
    (stage, fraction) => progress.update(stage, fraction),
  );
  progress.close();
  const tokens = await encode(tokenizer, prompt, flags.isSet("raw"));
  engine.handle({ kind: "submit", request: requestOf(tokens, flags, defaults, engine.limits.maxModelLen) });
  while (!isDone && engine.hasWork) engine.step();
  runtime.out(`${text.flush()}\n`);
  if (failure !== undefined) throw new GranaryError("engine_failed", failure);
  return 0;
}
