/**
 * Mirrors of the argument structs of cuda/include/granary.h, field for field. A test parses the header and
 * compares; at load the sizes are compared with what the library says.
 */
import type { BlockSchema } from "./argument-block";

export const initBlock = {
  workspaceBytes: "int64",
  deviceOrdinal: "int32",
  numThreads: "int32",
  debugChecks: "int32",
  reserved: "int32",
} as const satisfies BlockSchema;

export const deviceInfoBlock = {
  totalBytes: "int64",
  freeBytes: "int64",
  computeMajor: "int32",
  computeMinor: "int32",
  numMultiprocessors: "int32",
  driverVersion: "int32",
  runtimeVersion: "int32",
  cublasLtVersion: "int32",
} as const satisfies BlockSchema;

export const weightBlock = {
  hostSource: "address",
  prepared: "address",
  sourceStride: "int64",
  sourceRow: "int64",
  sourceColumn: "int64",
  rows: "int64",
  columns: "int64",
  row: "int64",
  totalRows: "int64",
  sourceDtype: "int32",
  dtype: "int32",
} as const satisfies BlockSchema;

export const synthesizeBlock = {
  ...weightBlock,
  firstElement: "int64",
  scale: "float64",
  offset: "float64",
  a: "uint32",
  b: "uint32",
} as const satisfies BlockSchema;

export const embeddingBlock = {
  table: "address",
  ids: "address",
  out: "address",
  rows: "int32",
  columns: "int32",
  vocab: "int32",
  dtype: "int32",
  tableDtype: "int32",
  scale: "float32",
} as const satisfies BlockSchema;

export const rmsNormBlock = {
  x: "address",
  residual: "address",
  weight: "address",
  out: "address",
  xStride: "int64",
  residualStride: "int64",
  outStride: "int64",
  rows: "int32",
  columns: "int32",
  dtype: "int32",
  weightDtype: "int32",
  eps: "float32",
  weightOffset: "float32",
} as const satisfies BlockSchema;

export const linearBlock = {
  x: "address",
  weight: "address",
  bias: "address",
  residual: "address",
  out: "address",
  xStride: "int64",
  residualStride: "int64",
  outStride: "int64",
  rows: "int32",
  inColumns: "int32",
  outColumns: "int32",
  dtype: "int32",
  weightDtype: "int32",
  outDtype: "int32",
} as const satisfies BlockSchema;

export const ropeTableBlock = {
  positions: "address",
  inverseFrequencies: "address",
  out: "address",
  rows: "int32",
  pairs: "int32",
  scale: "float32",
  reserved: "int32",
} as const satisfies BlockSchema;

export const qkvBlock = {
  qkv: "address",
  qOut: "address",
  qNorm: "address",
  kNorm: "address",
  cosSin: "address",
  locations: "address",
  kCache: "address",
  vCache: "address",
  qkvStride: "int64",
  qOutStride: "int64",
  kPageStrideBytes: "int64",
  vPageStrideBytes: "int64",
  rows: "int32",
  numQHeads: "int32",
  numKvHeads: "int32",
  headDim: "int32",
  vHeadDim: "int32",
  pairs: "int32",
  pageSize: "int32",
  interleaved: "int32",
  dtype: "int32",
  kvDtype: "int32",
  eps: "float32",
  normWeightOffset: "float32",
} as const satisfies BlockSchema;

export const attentionBlock = {
  q: "address",
  kCache: "address",
  vCache: "address",
  pageTable: "address",
  tableRows: "address",
  queryStarts: "address",
  seqLens: "address",
  sinks: "address",
  out: "address",
  scratch: "address",
  qStride: "int64",
  outStride: "int64",
  kPageStrideBytes: "int64",
  vPageStrideBytes: "int64",
  tableWidth: "int32",
  pageSize: "int32",
  numSeqs: "int32",
  tokensPerRow: "int32",
  maxQueryTokens: "int32",
  maxSeqLen: "int32",
  numQHeads: "int32",
  numKvHeads: "int32",
  headDim: "int32",
  vHeadDim: "int32",
  windowLeft: "int32",
  dtype: "int32",
  kvDtype: "int32",
  scale: "float32",
  softcap: "float32",
  reserved: "int32",
} as const satisfies BlockSchema;

export const gluBlock = {
  gateUp: "address",
  out: "address",
  gateUpStride: "int64",
  outStride: "int64",
  rows: "int32",
  columns: "int32",
  activation: "int32",
  dtype: "int32",
} as const satisfies BlockSchema;

export const gatedLinearBlock = {
  x: "address",
  weight: "address",
  bias: "address",
  gateUp: "address",
  out: "address",
  xStride: "int64",
  gateUpStride: "int64",
  outStride: "int64",
  rows: "int32",
  inColumns: "int32",
  columns: "int32",
  activation: "int32",
  dtype: "int32",
  weightDtype: "int32",
} as const satisfies BlockSchema;

export const moeRouteBlock = {
  logits: "address",
  ids: "address",
  weights: "address",
  rows: "int32",
  numExperts: "int32",
  topK: "int32",
  routing: "int32",
} as const satisfies BlockSchema;

export const moeExpertsBlock = {
  x: "address",
  gateUp: "address",
  down: "address",
  gateUpBias: "address",
  downBias: "address",
  ids: "address",
  weights: "address",
  residual: "address",
  out: "address",
  scratch: "address",
  xStride: "int64",
  residualStride: "int64",
  outStride: "int64",
  rows: "int32",
  hidden: "int32",
  inner: "int32",
  numExperts: "int32",
  topK: "int32",
  activation: "int32",
  dtype: "int32",
  weightDtype: "int32",
} as const satisfies BlockSchema;

export const gatherRowsBlock = {
  x: "address",
  indices: "address",
  out: "address",
  xStride: "int64",
  outStride: "int64",
  rows: "int32",
  columns: "int32",
  dtype: "int32",
  reserved: "int32",
} as const satisfies BlockSchema;

export const resolveTokensBlock = {
  ids: "address",
  lastTokens: "address",
  rows: "int32",
  numSlots: "int32",
} as const satisfies BlockSchema;

export const logSoftmaxBlock = {
  logits: "address",
  out: "address",
  logitsStride: "int64",
  outStride: "int64",
  rows: "int32",
  columns: "int32",
} as const satisfies BlockSchema;

export const topLogprobsBlock = {
  logprobs: "address",
  chosen: "address",
  ids: "address",
  values: "address",
  chosenValues: "address",
  chosenRanks: "address",
  logprobsStride: "int64",
  rows: "int32",
  columns: "int32",
  k: "int32",
  reserved: "int32",
} as const satisfies BlockSchema;

export const sampleBlock = {
  logits: "address",
  slots: "address",
  positions: "address",
  params: "address",
  counts: "address",
  biasIds: "address",
  biasValues: "address",
  suppressedIds: "address",
  mask: "address",
  out: "address",
  lastTokens: "address",
  scratch: "address",
  logitsStride: "int64",
  rows: "int32",
  vocab: "int32",
  numSlots: "int32",
  biasCapacity: "int32",
  suppressedCapacity: "int32",
  draw: "int32",
} as const satisfies BlockSchema;

export const samplingParamsBlock = {
  temperature: "float32",
  topP: "float32",
  minP: "float32",
  topK: "int32",
  repetitionPenalty: "float32",
  presencePenalty: "float32",
  frequencyPenalty: "float32",
  seedLow: "uint32",
  seedHigh: "uint32",
  choice: "int32",
  numBiases: "int32",
  numSuppressed: "int32",
  suppressBelow: "int32",
  usesCounts: "int32",
  reserved0: "int32",
  reserved1: "int32",
} as const satisfies BlockSchema;

export const countTokensBlock = {
  counts: "address",
  ids: "address",
  slot: "int32",
  vocab: "int32",
  numIds: "int32",
  numPrompt: "int32",
  clear: "int32",
  reserved: "int32",
} as const satisfies BlockSchema;

export const scatterBlock = {
  table: "address",
  indices: "address",
  values: "address",
  count: "int32",
  reserved: "int32",
} as const satisfies BlockSchema;

export const zeroBlocksBlock = {
  fields: "address",
  ids: "address",
  numFields: "int32",
  numIds: "int32",
} as const satisfies BlockSchema;

export const copyBlocksBlock = {
  sources: "address",
  destinations: "address",
  sourceIds: "address",
  destinationIds: "address",
  numFields: "int32",
  numIds: "int32",
} as const satisfies BlockSchema;

export const fieldBlock = {
  base: "address",
  strideBytes: "int64",
  payloadBytes: "int64",
} as const satisfies BlockSchema;

export const attentionKernelBlock = {
  image: "address",
  kind: "int32",
  dim: "int32",
  stages: "int32",
  dtype: "int32",
  kvDtype: "int32",
  isWide: "int32",
} as const satisfies BlockSchema;

/** The ops that compute: one schema each; the key in snake case after `granary_` is the symbol. */
export const opSchemas = {
  embedding: embeddingBlock,
  rmsNorm: rmsNormBlock,
  linear: linearBlock,
  ropeTable: ropeTableBlock,
  qkv: qkvBlock,
  attention: attentionBlock,
  glu: gluBlock,
  gatedLinear: gatedLinearBlock,
  moeRoute: moeRouteBlock,
  moeExperts: moeExpertsBlock,
  gatherRows: gatherRowsBlock,
  resolveTokens: resolveTokensBlock,
  logSoftmax: logSoftmaxBlock,
  topLogprobs: topLogprobsBlock,
  sample: sampleBlock,
  countTokens: countTokensBlock,
  scatter: scatterBlock,
  zeroBlocks: zeroBlocksBlock,
  copyBlocks: copyBlocksBlock,
} as const;

export type OpName = keyof typeof opSchemas;

/** Numbers of the structs, for granary_sizeof. */
export const structNumbers = {
  init: 0,
  deviceInfo: 1,
  weight: 2,
  synthesize: 3,
  embedding: 4,
  rmsNorm: 5,
  linear: 6,
  ropeTable: 7,
  qkv: 8,
  attention: 9,
  glu: 10,
  moeRoute: 11,
  moeExperts: 12,
  gatherRows: 13,
  resolveTokens: 14,
  logSoftmax: 15,
  topLogprobs: 16,
  sample: 17,
  samplingParams: 18,
  countTokens: 19,
  scatter: 20,
  zeroBlocks: 21,
  copyBlocks: 22,
  gatedLinear: 23,
  attentionKernel: 24,
} as const;
