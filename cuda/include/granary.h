// The C ABI that both kernel libraries export: libgranary_cuda.so and libgranary_cpu.so.
//
// Rules that hold for every function:
// - It returns 0, or a GranaryStatus; granary_last_error() then gives one line of text for the calling
//   thread.
// - Ids, counts and lengths are int32, leading dimensions and strides int64. Addresses are device addresses
//   (on the CPU library: ordinary ones) unless the name says host. 0 is "absent" for optional operands.
// - Ops are enqueued in order on the library's one compute stream; the CPU library has finished when it
//   returns.
// - What changes between steps (ids, positions, lengths, tables, locations, seeds) is read from device
//   buffers; the argument block holds only addresses, shapes and bounds, so an op can be recorded in a graph
//   and replayed.
// - Between capture begin and end no op allocates, synchronises, queries or loads a module (GRANARY_CAPTURE
//   otherwise).
// - Activations are row-major [rows, columns] in `dtype`; strides count elements. The CPU library takes f32
//   activations only; weights and KV may be f32 or bf16 there.
// - Argument blocks are packed by hand: 8-byte members first, then 4-byte ones, size a multiple of 8.
//   granary_sizeof(op) lets a caller check that its mirror of a block has the same size.
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GRANARY_ABI_VERSION 2

typedef uint64_t granary_address;

typedef enum GranaryStatus {
  GRANARY_OK = 0,
  GRANARY_INVALID = 1,      // an argument breaks this header's rules; nothing was enqueued
  GRANARY_UNSUPPORTED = 2,  // this library or this device cannot do it
  GRANARY_OUT_OF_MEMORY = 3,
  GRANARY_DEVICE = 4,       // the device reported an error; it is sticky, every later call repeats it
  GRANARY_CAPTURE = 5,      // not allowed while a graph is being captured
} GranaryStatus;

typedef enum GranaryDtype {
  GRANARY_F32 = 0,
  GRANARY_BF16 = 1,
  GRANARY_F16 = 2,
  GRANARY_I32 = 3,
} GranaryDtype;

typedef enum GranaryActivation {
  GRANARY_SILU = 0,       // silu(gate) * up
  GRANARY_GELU_TANH = 1,  // gelu_tanh(gate) * up
} GranaryActivation;

typedef enum GranaryRouting {
  GRANARY_SOFTMAX_TOPK = 0,        // softmax over all experts, then the top k, weights as they are
  GRANARY_SOFTMAX_TOPK_NORM = 1,   // the same, weights divided by their sum
  GRANARY_TOPK_SOFTMAX = 2,        // top k of the logits, softmax over those k
} GranaryRouting;

typedef enum GranaryCopyKind {
  GRANARY_HOST_TO_DEVICE = 0,
  GRANARY_DEVICE_TO_HOST = 1,
  GRANARY_DEVICE_TO_DEVICE = 2,
} GranaryCopyKind;

// Numbers of the argument blocks, for granary_sizeof.
typedef enum GranaryOp {
  GRANARY_OP_INIT = 0,
  GRANARY_OP_DEVICE_INFO = 1,
  GRANARY_OP_WEIGHT = 2,
  GRANARY_OP_SYNTHESIZE = 3,
  GRANARY_OP_EMBEDDING = 4,
  GRANARY_OP_RMS_NORM = 5,
  GRANARY_OP_LINEAR = 6,
  GRANARY_OP_ROPE_TABLE = 7,
  GRANARY_OP_QKV = 8,
  GRANARY_OP_ATTENTION = 9,
  GRANARY_OP_GLU = 10,
  GRANARY_OP_MOE_ROUTE = 11,
  GRANARY_OP_MOE_EXPERTS = 12,
  GRANARY_OP_GATHER_ROWS = 13,
  GRANARY_OP_RESOLVE_TOKENS = 14,
  GRANARY_OP_LOG_SOFTMAX = 15,
  GRANARY_OP_TOP_LOGPROBS = 16,
  GRANARY_OP_SAMPLE = 17,
  GRANARY_OP_SAMPLING_PARAMS = 18,
  GRANARY_OP_COUNT_TOKENS = 19,
  GRANARY_OP_SCATTER = 20,
  GRANARY_OP_ZERO_BLOCKS = 21,
  GRANARY_OP_COPY_BLOCKS = 22,
  GRANARY_OP_GATED_LINEAR = 23,
  GRANARY_OP_ATTENTION_KERNEL = 24,
} GranaryOp;

// ---- library, device, memory ------------------------------------------------------------------------------

typedef struct GranaryInit {
  int64_t workspaceBytes;  // fixed device workspace for products; 0 = the library's default
  int32_t deviceOrdinal;
  int32_t numThreads;      // CPU library: threads that compute, the caller's included; at least 1
  int32_t debugChecks;     // 1: verify operands where that costs time (ids in range, block 0 untouched)
  int32_t reserved;
} GranaryInit;

typedef struct GranaryDeviceInfo {
  int64_t totalBytes;
  int64_t freeBytes;
  int32_t computeMajor;         // CUDA compute capability; 0 on the CPU
  int32_t computeMinor;
  int32_t numMultiprocessors;   // on the CPU: threads in use
  int32_t driverVersion;        // as CUDA writes it, 13000 = 13.0
  int32_t runtimeVersion;
  int32_t cublasLtVersion;      // 0 = not found
  char name[128];
  char features[128];           // space separated: avx2 avx512 ... or sm_90a ptx80 ...
} GranaryDeviceInfo;

int32_t granary_abi_version(void);
int32_t granary_sizeof(int32_t op);
const char* granary_last_error(void);

// Probes without initialising: 0 when this library could run
// here, else a status with the reason in granary_last_error.
int32_t granary_probe(int32_t deviceOrdinal);
int32_t granary_init(const GranaryInit* args);
int32_t granary_shutdown(void);
// CUDA library: from now on products go through the cuBLASLt that dlopen finds under this name. One that
// cannot be used is GRANARY_UNSUPPORTED and leaves products to our own kernels, as before.
int32_t granary_open_cublaslt(const char* name);
int32_t granary_device_info(GranaryDeviceInfo* out);

// Zero-filled device memory aligned to 256 bytes; NULL when there is not enough.
void* granary_alloc(int64_t bytes);
int32_t granary_free(granary_address address);
// Page-locked host memory; on the CPU library ordinary memory. NULL when there is not enough.
void* granary_alloc_pinned(int64_t bytes);
int32_t granary_free_pinned(granary_address address);

// Stream-ordered copy. From pageable memory the source may be reused on return.
int32_t granary_copy(granary_address destination, granary_address source, int64_t bytes, int32_t kind);
int32_t granary_synchronize(void);

// Events on the compute stream. query: 1 done, 0 not yet, negative status on error.
void* granary_event_create(int32_t withTiming);
int32_t granary_event_destroy(granary_address event);
int32_t granary_event_record(granary_address event);
int32_t granary_event_query(granary_address event);
int32_t granary_event_wait(granary_address event);
// Nanoseconds between two recorded, finished timing events.
double granary_event_elapsed_ns(granary_address begin, granary_address end);

// Graphs; GRANARY_UNSUPPORTED on the CPU library.
int32_t granary_capture_begin(void);
void* granary_capture_end(void);
int32_t granary_graph_launch(granary_address graph);
int32_t granary_graph_destroy(granary_address graph);

// ---- weights ----------------------------------------------------------------------------------------------

// Rows [sourceRow, sourceRow + rows) and columns [sourceColumn, sourceColumn + columns)
// of a row-major host matrix become rows [row, row + rows) of a prepared weight of
// `totalRows` x `columns`. Several calls may fill one prepared weight (q, k and v).
typedef struct GranaryWeight {
  granary_address hostSource;  // row-major [?, sourceStride] in sourceDtype; unaligned allowed
  granary_address prepared;    // from granary_alloc(granary_weight_bytes(this))
  int64_t sourceStride;        // elements between source rows
  int64_t sourceRow, sourceColumn;
  int64_t rows, columns;
  int64_t row, totalRows;
  int32_t sourceDtype;
  int32_t dtype;               // of the prepared weight: f32 or bf16
} GranaryWeight;

// Bytes of the prepared weight (uses totalRows, columns, dtype); negative on bad arguments.
int64_t granary_weight_bytes(const GranaryWeight* args);
int32_t granary_prepare_weight(const GranaryWeight* args);
// 1 when a prepared weight of this dtype has plain row-major
// layout, so that a mapped file can be used in place.
int32_t granary_weight_is_plain(int32_t dtype);

// Synthetic values in place of a host source. For element i of the tensor (row-major, u32):
//   h = mix(mix(i ^ a) + b), x = ((h >> 8) + 0.5) / 2^23 - 1, value = offset + scale * sqrt(3) * x
// in float64, then rounded to f32 and to bf16 (nearest even) whatever the prepared dtype.
//   mix(x): x ^= x>>16; x *= 0x21f0aaad; x ^= x>>15; x *= 0x735a2d97; x ^= x>>15
// `weight` names the place as above; its source members give the range of the tensor, hostSource is ignored.
typedef struct GranarySynthesize {
  GranaryWeight weight;
  int64_t firstElement;  // index of the tensor element at source row 0, column 0 (a slice of a larger tensor)
  double scale, offset;
  uint32_t a, b;
} GranarySynthesize;
int32_t granary_synthesize(const GranarySynthesize* args);

// ---- ops --------------------------------------------------------------------------------------------------

// out[r] = table[ids[r]] * scale; a negative id gives a zero row.
typedef struct GranaryEmbedding {
  granary_address table;  // plain row-major [vocab, columns], prepared
  granary_address ids;    // int32 [rows]
  granary_address out;    // dtype [rows, columns]
  int32_t rows, columns, vocab;
  int32_t dtype, tableDtype;
  float scale;
} GranaryEmbedding;
int32_t granary_embedding(const GranaryEmbedding* args);

// residual (if any) += x, stored; with y = residual or x:
//   out = y * rsqrt(mean(y^2) + eps) * (weight + weightOffset)
typedef struct GranaryRmsNorm {
  granary_address x, residual, weight, out;  // weight f32 or dtype (weightDtype); out may be x
  int64_t xStride, residualStride, outStride;
  int32_t rows, columns;
  int32_t dtype, weightDtype;
  float eps, weightOffset;
} GranaryRmsNorm;
int32_t granary_rms_norm(const GranaryRmsNorm* args);

// out = x * weight^T (+ bias) (+ residual). residual may be out.
typedef struct GranaryLinear {
  granary_address x;         // dtype [rows, inColumns]
  granary_address weight;    // prepared [outColumns, inColumns]
  granary_address bias;      // f32 [outColumns] or 0
  granary_address residual;  // outDtype [rows, outColumns] or 0
  granary_address out;       // outDtype [rows, outColumns]
  int64_t xStride, residualStride, outStride;
  int32_t rows, inColumns, outColumns;
  int32_t dtype, weightDtype, outDtype;
} GranaryLinear;
int32_t granary_linear(const GranaryLinear* args);

// out[r][i] = {cos, sin}(positions[r] * inverseFrequencies[i]) * scale; angles in float64.
typedef struct GranaryRopeTable {
  granary_address positions;           // int32 [rows]
  granary_address inverseFrequencies;  // f64 [pairs]
  granary_address out;                 // f32 [rows, pairs, 2]
  int32_t rows, pairs;
  float scale;
  int32_t reserved;
} GranaryRopeTable;
int32_t granary_rope_table(const GranaryRopeTable* args);

// One row of qkv is [numQHeads * headDim | numKvHeads * headDim | numKvHeads * vHeadDim]. Per head: optional
// RMS norm of q and k, optional rotation of the first 2 * pairs dimensions, q written to qOut, k and v
// rounded to kvDtype and written at their location. Location l: page l / pageSize, row l % pageSize;
//   row address = cache + page * pageStrideBytes + row * heads * dim * element.
// A negative location writes nothing. 0 for kCache and vCache: no cache write.
typedef struct GranaryQkv {
  granary_address qkv;        // dtype [rows, qkvStride]
  granary_address qOut;       // dtype [rows, numQHeads * headDim]; may be qkv with qOutStride = qkvStride
  granary_address qNorm;      // f32 [headDim] or 0
  granary_address kNorm;      // f32 [headDim] or 0
  granary_address cosSin;     // f32 [rows, pairs, 2] or 0
  granary_address locations;  // int32 [rows]
  granary_address kCache, vCache;
  int64_t qkvStride, qOutStride;
  int64_t kPageStrideBytes, vPageStrideBytes;
  int32_t rows, numQHeads, numKvHeads, headDim, vHeadDim, pairs;
  int32_t pageSize;
  int32_t interleaved;        // 0: pairs are (i, i + pairs); 1: (2i, 2i + 1)
  int32_t dtype, kvDtype;
  float eps, normWeightOffset;
} GranaryQkv;
int32_t granary_qkv(const GranaryQkv* args);

// Attention over paged KV. Sequence s has queries in rows [queryStarts[s], queryStarts[s + 1]) or, with
// queryStarts = 0, exactly tokensPerRow of them from row s * tokensPerRow. Its last query stands at position
// seqLens[s] - 1; a query at position p sees keys max(0, p - windowLeft) .. p (windowLeft < 0: from 0).
// seqLens[s] = 0: the sequence is padding, nothing is written.
// Page of key j: pageTable[tableRows[s] * tableWidth + j / pageSize]; pages <= 0 are holes and skipped.
// score = softcap ? softcap * tanh(q.k * scale / softcap) : q.k * scale;
// sinks add exp(sink[head]) to the denominator.
typedef struct GranaryAttention {
  granary_address q;            // dtype [rows, numQHeads * headDim]
  granary_address kCache, vCache;
  granary_address pageTable;    // int32 [?, tableWidth]
  granary_address tableRows;    // int32 [numSeqs]
  granary_address queryStarts;  // int32 [numSeqs + 1] or 0
  granary_address seqLens;      // int32 [numSeqs]
  granary_address sinks;        // f32 [numQHeads] or 0
  granary_address out;          // dtype [rows, numQHeads * vHeadDim]
  granary_address scratch;      // granary_attention_scratch_bytes(this) bytes or 0 if that is 0
  int64_t qStride, outStride;
  int64_t kPageStrideBytes, vPageStrideBytes;
  int32_t tableWidth, pageSize;
  int32_t numSeqs, tokensPerRow;
  int32_t maxQueryTokens;       // bound on one sequence's queries
  int32_t maxSeqLen;            // bound on seqLens
  int32_t numQHeads, numKvHeads, headDim, vHeadDim;
  int32_t windowLeft;
  int32_t dtype, kvDtype;
  float scale, softcap;
  int32_t reserved;
} GranaryAttention;
// Enough for these bounds and for every smaller shape: callers size the scratch once.
int64_t granary_attention_scratch_bytes(const GranaryAttention* args);
int32_t granary_attention(const GranaryAttention* args);

typedef enum GranaryAttentionKernelKind {
  GRANARY_ATTENTION_SCALAR = 0,  // any types, one query a warp
  GRANARY_ATTENTION_DECODE = 1,  // bf16 tiles of 16 query rows
  GRANARY_ATTENTION_PREFILL = 2, // bf16 tiles of 64
} GranaryAttentionKernelKind;

// A kernel compiled at run time from the library's own sources for a head dimension that has none here. Ops
// take it from the next call on; a second one for the same purpose is ignored. CUDA only.
typedef struct GranaryAttentionKernel {
  granary_address image;      // host: machine code that holds this one kernel; free on return
  int32_t kind;               // GranaryAttentionKernelKind
  int32_t dim;                // padded head dimension that it takes; exactly this one (tiles) or up to it
  int32_t stages;             // of the decode kernel
  int32_t dtype, kvDtype;     // of the scalar kernel, as
  int32_t isWide;             // whether rows of K and V move 16 bytes at a time
} GranaryAttentionKernel;
int32_t granary_load_attention_kernel(const GranaryAttentionKernel* args);

// out = activation(gate) * up; one row of gateUp is [gate | up], each `columns` long.
typedef struct GranaryGlu {
  granary_address gateUp, out;
  int64_t gateUpStride, outStride;
  int32_t rows, columns;
  int32_t activation, dtype;
} GranaryGlu;
int32_t granary_glu(const GranaryGlu* args);

// The two together: out = activation(x * gate^T) * (x * up^T),
// gate the first `columns` rows of the weight, up the others.
typedef struct GranaryGatedLinear {
  granary_address x;       // dtype [rows, inColumns]
  granary_address weight;  // prepared [2 * columns, inColumns]
  granary_address bias;    // f32 [2 * columns] or 0
  granary_address gateUp;  // dtype [rows, 2 * columns]: scratch, its contents are undefined afterwards
  granary_address out;     // dtype [rows, columns]
  int64_t xStride, gateUpStride, outStride;
  int32_t rows, inColumns, columns;
  int32_t activation, dtype, weightDtype;
} GranaryGatedLinear;
int32_t granary_gated_linear(const GranaryGatedLinear* args);

// Chooses experts for each row; ties go to the lower expert id; ids come in descending order of their logit.
typedef struct GranaryMoeRoute {
  granary_address logits;   // f32 [rows, numExperts]
  granary_address ids;      // int32 [rows, topK]
  granary_address weights;  // f32 [rows, topK]
  int32_t rows, numExperts, topK;
  int32_t routing;
} GranaryMoeRoute;
int32_t granary_moe_route(const GranaryMoeRoute* args);

// out[r] = sum over j of weights[r][j] * down_e(activation(gate_e x) * (up_e x)),
// e = ids[r][j], in the order of j.
typedef struct GranaryMoeExperts {
  granary_address x;                // dtype [rows, hidden]
  // Prepared: expert e is rows [e * 2 * inner, ...) of gateUp and [e * hidden, ...) of down.
  granary_address gateUp, down;
  granary_address gateUpBias, downBias;  // f32 [numExperts, 2 * inner], [numExperts, hidden] or 0
  granary_address ids, weights;
  granary_address residual;         // dtype [rows, hidden] or 0
  granary_address out;              // dtype [rows, hidden]
  granary_address scratch;          // granary_moe_scratch_bytes(this)
  int64_t xStride, residualStride, outStride;
  int32_t rows, hidden, inner, numExperts, topK;
  int32_t activation, dtype, weightDtype;
} GranaryMoeExperts;
int64_t granary_moe_scratch_bytes(const GranaryMoeExperts* args);
int32_t granary_moe_experts(const GranaryMoeExperts* args);

// out[r] = x[indices[r]]; a negative index gives a zero row.
typedef struct GranaryGatherRows {
  granary_address x, indices, out;
  int64_t xStride, outStride;
  int32_t rows, columns, dtype;
  int32_t reserved;
} GranaryGatherRows;
int32_t granary_gather_rows(const GranaryGatherRows* args);

// ids[r] stays where it is not negative, else becomes lastTokens[-ids[r] - 1]:
// the token that the sampler left for that slot.
typedef struct GranaryResolveTokens {
  granary_address ids, lastTokens;
  int32_t rows, numSlots;
} GranaryResolveTokens;
int32_t granary_resolve_tokens(const GranaryResolveTokens* args);

// out = log_softmax(logits) per row; out may be logits. A row with a NaN becomes all NaN.
typedef struct GranaryLogSoftmax {
  granary_address logits, out;  // f32 [rows, columns]
  int64_t logitsStride, outStride;
  int32_t rows, columns;
} GranaryLogSoftmax;
int32_t granary_log_softmax(const GranaryLogSoftmax* args);

// The k best of each row of log-probabilities, descending, ties to the lower id; and of chosen[r] (>= 0) its
// value and its rank, counted from 1: 1 + the number of strictly greater entries.
typedef struct GranaryTopLogprobs {
  granary_address logprobs;                   // f32 [rows, columns]
  granary_address chosen;                     // int32 [rows] or 0
  granary_address ids, values;                // int32, f32 [rows, k] or 0 when k = 0
  granary_address chosenValues, chosenRanks;  // f32, int32 [rows] or 0
  int64_t logprobsStride;
  int32_t rows, columns, k;
  int32_t reserved;
} GranaryTopLogprobs;
int32_t granary_top_logprobs(const GranaryTopLogprobs* args);

// How one slot samples. Written by the host at admission, read by granary_sample.
typedef struct GranarySamplingParams {
  float temperature;        // 0 = the largest logit, ties to the lower id
  float topP, minP;         // 1 and 0 = off
  int32_t topK;             // <= 0 = off
  float repetitionPenalty;  // 1 = off; over prompt and output tokens: l > 0 ? l / p : l * p
  float presencePenalty, frequencyPenalty;  // 0 = off; over output tokens
  uint32_t seedLow, seedHigh;
  int32_t choice;           // index among the n choices of one request
  int32_t numBiases;        // valid entries of the slot's row in biasIds and biasValues
  int32_t numSuppressed;    // valid entries of the slot's row in suppressedIds
  int32_t suppressBelow;    // those ids get -inf while the sampled position is below this
  int32_t usesCounts;       // 1: a penalty is on, the slot's row of counts is read and kept up to date
  int32_t reserved0, reserved1;
} GranarySamplingParams;    // 64 bytes

// Samples one token a row. Order: penalties, biases, suppression, mask, temperature, min-p, top-k, top-p,
// then the draw: the first token in ascending id order whose cumulative kept probability exceeds u times the
// kept total, with u = (philox4x32-10(key = seed, counter = {position, choice, draw, 0}).x + 0.5) / 2^32.
// A row whose logits hold a NaN or no finite value yields -1. slots[r] < 0: padding, the row is skipped.
// logits are changed in place.
typedef struct GranarySample {
  granary_address logits;         // f32 [rows, vocab]
  granary_address slots;          // int32 [rows]
  granary_address positions;      // int32 [rows]: position of the token being sampled
  granary_address params;         // GranarySamplingParams [numSlots]
  granary_address counts;         // uint32 [numSlots, vocab] or 0: bit 31 = in the prompt,
                                  // low bits = times in the output
  granary_address biasIds;        // int32 [numSlots, biasCapacity]
  granary_address biasValues;     // f32 [numSlots, biasCapacity]
  granary_address suppressedIds;  // int32 [numSlots, suppressedCapacity]
  granary_address mask;           // uint32 [rows, ceil(vocab / 32)], bit 1 = allowed; or 0
  granary_address out;            // int32 [rows]
  granary_address lastTokens;     // int32 [numSlots] or 0: gets the token too
  granary_address scratch;        // granary_sample_scratch_bytes(this)
  int64_t logitsStride;
  int32_t rows, vocab, numSlots;
  int32_t biasCapacity, suppressedCapacity;
  int32_t draw;
} GranarySample;
int64_t granary_sample_scratch_bytes(const GranarySample* args);
int32_t granary_sample(const GranarySample* args);

// Penalty counts of one slot: optionally clears its row, then marks prompt tokens and adds output tokens.
typedef struct GranaryCountTokens {
  granary_address counts;  // uint32 [?, vocab]
  granary_address ids;     // int32 [numIds]: the first numPrompt are prompt tokens, the rest output tokens
  int32_t slot, vocab, numIds, numPrompt;
  int32_t clear;
  int32_t reserved;
} GranaryCountTokens;
int32_t granary_count_tokens(const GranaryCountTokens* args);

// table[indices[i]] = values[i], in order (a later entry wins). int32.
typedef struct GranaryScatter {
  granary_address table, indices, values;
  int32_t count;
  int32_t reserved;
} GranaryScatter;
int32_t granary_scatter(const GranaryScatter* args);

// One planned field of a cache group: block i starts at base + i * strideBytes and holds payloadBytes.
typedef struct GranaryField {
  granary_address base;
  int64_t strideBytes, payloadBytes;
} GranaryField;

// Clears the payload of every field of every listed block.
typedef struct GranaryZeroBlocks {
  granary_address fields;  // GranaryField [numFields]
  granary_address ids;     // int32 [numIds]
  int32_t numFields, numIds;
} GranaryZeroBlocks;
int32_t granary_zero_blocks(const GranaryZeroBlocks* args);

// For every pair and field: payload of block sourceIds[i] of
// sources[f] -> block destinationIds[i] of destinations[f]. Destinations are distinct.
typedef struct GranaryCopyBlocks {
  granary_address sources, destinations;  // GranaryField [numFields], equal payloads
  granary_address sourceIds, destinationIds;
  int32_t numFields, numIds;
} GranaryCopyBlocks;
int32_t granary_copy_blocks(const GranaryCopyBlocks* args);

#ifdef __cplusplus
}
#endif
