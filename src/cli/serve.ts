/** `granary serve`: tokenizer and HTTP on this thread, the engine on its own, until a signal drains both. */
import { EngineWorkerClient } from "../engine/engine-worker-client";
import type { ModelCard } from "../server/dependencies";
import { listen } from "../server/listen";
import { createServer } from "../server/server";
import { ModelTokenizer } from "../tokenizer/model-tokenizer";
import { writeDump } from "./dump";
import { engineOptions } from "./engine-setup";
import { lineLog } from "./line-log";
import { locateModel, type ModelSource, readModelTexts, samplingDefaults } from "./model-source";
import type { FlagValues } from "./parse-flags";
import { ProgressLine } from "./progress";
import type { Runtime } from "./runtime";

function modelCard(flags: FlagValues, model: ModelSource, runtime: Runtime): ModelCard {
  const [id = model.name, ...aliases] = flags.list("served-model-name");
  return { id, aliases, created: runtime.unixSeconds(), root: model.root };
}

/** Starts the engine's thread; resolves when it can take requests, throws when it cannot be built. */
async function startEngine(
  runtime: Runtime,
  options: ReturnType<typeof engineOptions>,
  onFailure: () => void,
): Promise<EngineWorkerClient> {
  const progress = new ProgressLine(runtime);
  let isReady = false;
  const engine = new EngineWorkerClient(runtime.workers.engine, options, runtime.clockMs, {
    onProgress: (stage, fraction) => progress.update(stage, fraction),
    onReady: (report) => {
      isReady = true;
      progress.close();
      for (const line of report) runtime.err(`${line}\n`);
    },
    onFailure: (error, dump) => {
      progress.close();
      if (!isReady) return;
      const place = dump === undefined ? "" : `; its state is in ${writeDump(dump, runtime)}`;
      runtime.err(`granary: the engine stopped: ${error}${place}\n`);
      onFailure();
    },
  });
  return engine;
}

/** Exit code: 0 after a drain, 70 when the engine broke. */
export async function serve(flags: FlagValues, runtime: Runtime): Promise<number> {
  const startedMs = runtime.clockMs();
  const model = locateModel(flags, runtime);
  const texts = readModelTexts(model.directory);
  const tokenizer = new ModelTokenizer(texts, {
    workerUrl: runtime.workers.tokenizer,
  });
  const ended = Promise.withResolvers<number>();
  const options = engineOptions(flags, runtime, model, tokenizer.endTokens);
  const engine = await startEngine(runtime, options, () => ended.resolve(70));
  const app = createServer({
    engine,
    tokenizer,
    model: modelCard(flags, model, runtime),
    options: {
      version: runtime.version,
      apiKeys: flags.list("api-key"),
      maxLogprobs: flags.required("max-logprobs"),
      samplingDefaults: samplingDefaults(flags, texts),
    },
    clock: { monotonicMs: runtime.clockMs, unixSeconds: runtime.unixSeconds },
    log: lineLog(runtime),
  });
  const server = listen(app, { host: flags.required("host"), port: flags.required("port") });
  const drainMs = flags.required<number>("drain-timeout-s") * 1000;
  runtime.onTerminate((count) => {
    if (count > 1 || engine.state === "loading") ended.resolve(engine.state === "loading" ? 0 : 1);
    else void Promise.race([engine.drain(), Bun.sleep(drainMs)]).then(() => ended.resolve(0));
  });
  const failed = engine.ready().then(
    () => {
      const seconds = ((runtime.clockMs() - startedMs) / 1000).toFixed(2);
      runtime.err(
        `granary ${runtime.version} serves ${model.name} at ${server.url} (ready in ${seconds} s)\n`,
      );
    },
    (error: Error) => {
      runtime.err(`granary: ${error.message}\n`);
      ended.resolve(1);
    },
  );
  const code = await ended.promise;
  const stopped = engine.stop();
  // Readers of finished and of broken off answers get their last bytes before the sockets go.
  await Promise.race([server.stop(false), Bun.sleep(200)]);
  await server.stop(true);
  await Promise.race([stopped, failed]);
  tokenizer.close();
  return code;
}
