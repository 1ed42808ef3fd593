/** The one table of flags. Names follow vLLM where a flag means the same. */
import type { CommandName, FlagSpec } from "./flag-types";

const engine: readonly CommandName[] = ["serve", "run", "bench"];
const all: readonly CommandName[] = ["serve", "run", "bench", "doctor"];
const serve: readonly CommandName[] = ["serve"];
const run: readonly CommandName[] = ["run"];
const bench: readonly CommandName[] = ["bench"];

const modelFlags: readonly FlagSpec[] = [
  {
    name: "model",
    kind: "text",
    placeholder: "DIR|ORG/NAME",
    help: "model directory, or a name in the Hugging Face cache; without it the embedded demo model",
    commands: engine,
  },
  {
    name: "revision",
    kind: "text",
    defaultValue: "main",
    help: "branch, tag or commit in the cache",
    commands: engine,
  },
  {
    name: "load-format",
    kind: "text",
    choices: ["auto", "dummy"],
    defaultValue: "auto",
    help: "dummy makes weights up from tensor names: any config.json runs without a checkpoint",
    commands: engine,
  },
  {
    name: "seed",
    kind: "integer",
    minimum: 0,
    defaultValue: "0",
    help: "seed of dummy weights",
    commands: engine,
  },
  {
    name: "dtype",
    kind: "text",
    choices: ["auto", "float32", "bfloat16"],
    defaultValue: "auto",
    help: "compute type; auto = float32 on the CPU, bfloat16 on CUDA",
    commands: engine,
  },
  {
    name: "generation-config",
    kind: "text",
    choices: ["auto", "none"],
    defaultValue: "auto",
    help: "auto takes temperature, top_p and so on from generation_config.json where a request is silent",
    commands: ["serve", "run"],
  },
  {
    name: "max-model-len",
    kind: "integer",
    minimum: 1,
    help: "tokens of one request, prompt and answer; default: what the model and the cache allow",
    commands: engine,
  },
];

const deviceFlags: readonly FlagSpec[] = [
  {
    name: "device",
    kind: "text",
    choices: ["auto", "cpu", "cuda"],
    defaultValue: "auto",
    help: "where the arithmetic runs; auto = CUDA when it can",
    commands: engine,
  },
  {
    name: "threads",
    kind: "integer",
    minimum: 1,
    maximum: 1024,
    help: "CPU threads that compute, the engine's own included; default: all cores but one",
    commands: all,
  },
  {
    name: "gpu-memory-utilization",
    kind: "number",
    minimum: 0.01,
    maximum: 1,
    defaultValue: "0.9",
    help: "share of device memory for weights, buffers and cache (CUDA)",
    commands: engine,
  },
  {
    name: "debug-checks",
    kind: "flag",
    help: "verify ids and addresses inside the kernels, at a cost in speed",
    commands: engine,
  },
];

const cacheFlags: readonly FlagSpec[] = [
  {
    name: "prefix-granularity",
    kind: "integer",
    minimum: 1,
    maximum: 65_536,
    help: "tokens of one cacheable prefix step; default 64, for the demo model 8",
    commands: engine,
  },
  {
    name: "num-lcm-blocks",
    kind: "integer",
    minimum: 1,
    help: "size of the cache pool in LCM blocks; default: from memory",
    commands: engine,
  },
  {
    name: "cpu-cache-bytes",
    kind: "integer",
    minimum: 1,
    help: "size of the cache pool on the CPU; default: a quarter of free memory, at most 4 GiB",
    commands: engine,
  },
  {
    name: "kv-cache-dtype",
    kind: "text",
    choices: ["auto", "float32", "bfloat16"],
    defaultValue: "auto",
    help: "type of cached keys and values; auto = the compute type",
    commands: engine,
  },
  {
    name: "kernel-page-size",
    kind: "integer",
    minimum: 1,
    help: "tokens of a kernel page; default: the largest supported size that fits",
    commands: engine,
  },
  { name: "no-enable-prefix-caching", kind: "flag", help: "never reuse cached prefixes", commands: engine },
];

const scheduleFlags: readonly FlagSpec[] = [
  {
    name: "max-num-seqs",
    kind: "integer",
    minimum: 1,
    maximum: 65_536,
    defaultValue: "256",
    help: "requests that run at once",
    commands: engine,
  },
  {
    name: "max-num-batched-tokens",
    kind: "integer",
    minimum: 1,
    maximum: 1_048_576,
    help: "tokens of one step; default 512 on the CPU, 8192 on CUDA",
    commands: engine,
  },
  {
    name: "enable-mixed-batch",
    kind: "flag",
    help: "let prompts and running answers share a step",
    commands: engine,
  },
  {
    name: "no-overlap",
    kind: "flag",
    help: "read a step's tokens before planning the next (CUDA)",
    commands: engine,
  },
  {
    name: "enforce-eager",
    kind: "flag",
    help: "launch decode steps op by op, not as graphs (CUDA)",
    commands: engine,
  },
];

const serverFlags: readonly FlagSpec[] = [
  { name: "host", kind: "text", defaultValue: "127.0.0.1", help: "address to listen on", commands: serve },
  {
    name: "port",
    kind: "integer",
    minimum: 0,
    maximum: 65_535,
    defaultValue: "8000",
    help: "port to listen on; 0 = any free one",
    commands: serve,
  },
  {
    name: "served-model-name",
    kind: "list",
    placeholder: "NAME",
    help: "name (repeatable) that requests use; default: --model as given",
    commands: serve,
  },
  {
    name: "api-key",
    kind: "list",
    placeholder: "KEY",
    help: "key (repeatable) that clients must send; health stays open",
    commands: ["serve", "bench"],
  },
  {
    name: "max-logprobs",
    kind: "integer",
    minimum: -1,
    defaultValue: "20",
    help: "most log-probabilities a position; -1 allows the whole vocabulary",
    commands: serve,
  },
  {
    name: "drain-timeout-s",
    kind: "number",
    minimum: 0,
    defaultValue: "30",
    help: "seconds that running requests get after SIGTERM",
    commands: serve,
  },
];

const runFlags: readonly FlagSpec[] = [
  {
    name: "max-tokens",
    kind: "integer",
    minimum: 1,
    defaultValue: "256",
    help: "tokens to generate at most",
    commands: run,
  },
  {
    name: "temperature",
    kind: "number",
    minimum: 0,
    help: "default: the model's own, else 1",
    commands: run,
  },
  { name: "raw", kind: "flag", help: "continue the text as it is, without the chat template", commands: run },
];

const benchFlags: readonly FlagSpec[] = [
  {
    name: "num-prompts",
    kind: "integer",
    minimum: 1,
    defaultValue: "64",
    help: "requests in all",
    commands: bench,
  },
  {
    name: "input-len",
    kind: "integer",
    minimum: 1,
    defaultValue: "512",
    help: "prompt tokens; cut to what the context leaves beside the answer (cutRequests)",
    commands: bench,
  },
  {
    name: "output-len",
    kind: "integer",
    minimum: 1,
    defaultValue: "128",
    help: "generated tokens, at most the context less one",
    commands: bench,
  },
  {
    name: "lengths",
    kind: "text",
    choices: ["fixed", "uniform", "sharegpt"],
    defaultValue: "fixed",
    help: "spread of both lengths: none, half to one and a half times, or log-normal like chat traffic",
    commands: bench,
  },
  {
    name: "shared-prefix-len",
    kind: "integer",
    minimum: 0,
    defaultValue: "0",
    help: "tokens that all prompts begin with",
    commands: bench,
  },
  {
    name: "workload-seed",
    kind: "integer",
    minimum: 0,
    defaultValue: "1",
    help: "seed of the prompts; a server that had the same before answers from its cache",
    commands: bench,
  },
  {
    name: "batch-size",
    kind: "integer",
    minimum: 1,
    defaultValue: "8",
    help: "requests that run together (latency)",
    commands: bench,
  },
  {
    name: "num-iterations",
    kind: "integer",
    minimum: 1,
    defaultValue: "5",
    help: "timed repetitions after one that is not (latency)",
    commands: bench,
  },
  {
    name: "base-url",
    kind: "text",
    defaultValue: "http://127.0.0.1:8000",
    help: "server to load (serve)",
    commands: bench,
  },
  {
    name: "request-rate",
    kind: "number",
    minimum: 0,
    defaultValue: "0",
    help: "arrivals a second, Poisson; 0 = as fast as the concurrency allows (serve)",
    commands: bench,
  },
  {
    name: "max-concurrency",
    kind: "integer",
    minimum: 1,
    defaultValue: "16",
    help: "requests open at once (serve)",
    commands: bench,
  },
  { name: "json", kind: "flag", help: "print JSON instead of a table", commands: bench },
];

export const flagSections: readonly { readonly title: string; readonly flags: readonly FlagSpec[] }[] = [
  { title: "Model", flags: modelFlags },
  { title: "Device", flags: deviceFlags },
  { title: "Cache", flags: cacheFlags },
  { title: "Scheduling", flags: scheduleFlags },
  { title: "Server", flags: serverFlags },
  { title: "Generation", flags: runFlags },
  { title: "Benchmark", flags: benchFlags },
];

export const allFlags: readonly FlagSpec[] = flagSections.flatMap(({ flags }) => flags);
