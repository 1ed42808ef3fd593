/** The one table of flags. Names follow vLLM where a flag means the same. */
import type { CommandName, FlagSpec } from "./flag-types";

const engine: readonly CommandName[] = ["serve", "run"];
const all: readonly CommandName[] = ["serve", "run", "doctor"];
const serve: readonly CommandName[] = ["serve"];
const run: readonly CommandName[] = ["run"];

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
    defaultValue: "64",
    help: "tokens of one cacheable prefix step",
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
    commands: serve,
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

export const flagSections: readonly { readonly title: string; readonly flags: readonly FlagSpec[] }[] = [
  { title: "Model", flags: modelFlags },
  { title: "Device", flags: deviceFlags },
  { title: "Cache", flags: cacheFlags },
  { title: "Scheduling", flags: scheduleFlags },
  { title: "Server", flags: serverFlags },
  { title: "Generation", flags: runFlags },
];

export const allFlags: readonly FlagSpec[] = flagSections.flatMap(({ flags }) => flags);
