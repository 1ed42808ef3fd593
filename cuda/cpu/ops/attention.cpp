// granary_attention and its scratch.
#include "../kernels/kernels.h"
#include "../runtime/check.h"
#include "../runtime/export.h"

using namespace granary;

namespace {

const int32_t* int32At(granary_address address) { return reinterpret_cast<const int32_t*>(address); }

void checkShape(Check& check, const GranaryAttention& args) {
  check.atLeast("numSeqs", args.numSeqs, 0);
  check.atLeast("numKvHeads", args.numKvHeads, 1);
  check.atLeast("numQHeads", args.numQHeads, 1);
  if (!check.failed())
    check.that(args.numQHeads % args.numKvHeads == 0, "numQHeads", "is no multiple of numKvHeads");
  check.atLeast("headDim", args.headDim, 1);
  check.atMost("headDim", args.headDim, kMaxHeadDim);
  check.atLeast("vHeadDim", args.vHeadDim, 1);
  check.atMost("vHeadDim", args.vHeadDim, kMaxHeadDim);
  check.atLeast("pageSize", args.pageSize, 1);
  check.atLeast("tableWidth", args.tableWidth, 1);
  check.atLeast("maxSeqLen", args.maxSeqLen, 1);
  check.atLeast("tokensPerRow", args.tokensPerRow, args.queryStarts == 0 ? 1 : 0);
  check.activation("dtype", args.dtype);
  check.storage("kvDtype", args.kvDtype);
}

void checkOperands(Check& check, const GranaryAttention& args) {
  const int64_t elementBytes = args.kvDtype == GRANARY_BF16 ? 2 : 4;
  const int64_t rowHeads = static_cast<int64_t>(args.pageSize) * args.numKvHeads * elementBytes;
  check.present("q", args.q);
  check.present("kCache", args.kCache);
  check.present("vCache", args.vCache);
  check.present("pageTable", args.pageTable);
  check.present("tableRows", args.tableRows);
  check.present("seqLens", args.seqLens);
  check.present("out", args.out);
  check.present("scratch", args.scratch);
  check.atLeast("qStride", args.qStride, static_cast<int64_t>(args.numQHeads) * args.headDim);
  check.atLeast("outStride", args.outStride, static_cast<int64_t>(args.numQHeads) * args.vHeadDim);
  check.atLeast("kPageStrideBytes", args.kPageStrideBytes, rowHeads * args.headDim);
  check.atLeast("vPageStrideBytes", args.vPageStrideBytes, rowHeads * args.vHeadDim);
}

// Scratch and table are sized by bounds, so a length beyond them would write or read elsewhere. Always
// checked: it is cheap.
void checkLengths(Check& check, const GranaryAttention& args) {
  const int64_t tableTokens = static_cast<int64_t>(args.tableWidth) * args.pageSize;
  const int32_t* seqLens = int32At(args.seqLens);
  for (int32_t s = 0; s < args.numSeqs; ++s) {
    check.atLeast("seqLens", seqLens[s], 0);
    check.atMost("seqLens", seqLens[s], args.maxSeqLen);
    check.atMost("seqLens", seqLens[s], tableTokens);
    if (args.queryStarts == 0 || check.failed()) continue;
    const int64_t queries =
        static_cast<int64_t>(int32At(args.queryStarts)[s + 1]) - int32At(args.queryStarts)[s];
    check.atLeast("queryStarts, its tokens of one sequence", queries, 0);
    check.atMost("queryStarts, its tokens of one sequence", queries, args.maxQueryTokens);
  }
}

void verifySequences(Check& check, const GranaryAttention& args) {
  for (int32_t s = 0; s < args.numSeqs && !check.failed(); ++s) {
    const int64_t length = int32At(args.seqLens)[s];
    if (length == 0) continue;
    const int64_t queries = args.queryStarts == 0
                                ? args.tokensPerRow
                                : int32At(args.queryStarts)[s + 1] - int32At(args.queryStarts)[s];
    check.atMost("tokens of a sequence", queries, length);
    check.atLeast("tableRows", int32At(args.tableRows)[s], 0);
    if (check.failed() || queries == 0) return;
    // A query always sees itself, so the pages of the sequence's queries cannot be holes.
    const int32_t* pages =
        int32At(args.pageTable) + static_cast<int64_t>(int32At(args.tableRows)[s]) * args.tableWidth;
    for (int64_t p = (length - queries) / args.pageSize; p <= (length - 1) / args.pageSize; ++p) {
      check.that(pages[p] > 0, "pageTable", "has a hole where the sequence's own queries stand");
    }
  }
}

}  // namespace

GRANARY_EXPORT int64_t granary_attention_scratch_bytes(const GranaryAttention* args) {
  Check check("attention_scratch_bytes", args);
  if (check.failed()) return -check.status();
  checkShape(check, *args);
  return check.failed() ? -check.status() : kernels().attentionScratchBytes(*args);
}

GRANARY_EXPORT int32_t granary_load_attention_kernel(const GranaryAttentionKernel* args) {
  Check check("load_attention_kernel", args);
  return check.failed() ? check.status() : check.refuse(GRANARY_UNSUPPORTED, "kernels are CUDA's");
}

GRANARY_EXPORT int32_t granary_attention(const GranaryAttention* args) {
  Check check("attention", args);
  if (check.failed()) return check.status();
  checkShape(check, *args);
  checkOperands(check, *args);
  if (!check.failed()) checkLengths(check, *args);
  if (!check.failed() && verifies()) verifySequences(check, *args);
  if (check.failed()) return check.status();
  kernels().attention(*args);
  return GRANARY_OK;
}
