// Mixture of experts.
//   out[r] = sum over j of weights[r][j] * down_e(activation(gate_e x[r]) * (up_e x[r])), e = ids[r][j], in
//   the order of j
// The (row, j) pairs are sorted by expert, so that an expert's weights are read once for all its rows; their
// results are kept apart and summed for each row in the order of j, by fma from zero, and then the residual
// is added. A task is a piece of an expert's output columns. Bound: memory for few rows, as product.cpp for
// many.
#include "glu.h"
#include "kernel.h"
#include "product.h"

namespace granary::GRANARY_ISA {

namespace {

// Parts of the scratch. Pairs are numbered in the order of their expert.
struct Scratch {
  int32_t* starts;      // [numExperts + 1]: first pair of an expert
  int32_t* pairRows;    // [pairs]: the row of x of a pair
  int32_t* pairOfSlot;  // [rows * topK]: the pair of (row, j), -1 for an id out of range
  float* gateUp;        // [pairs, 2 * inner], the activation's result in the first half
  float* down;          // [pairs, hidden]
  int64_t bytes;
};

Scratch layOut(const GranaryMoeExperts& args) {
  const int64_t pairs = static_cast<int64_t>(args.rows) * args.topK;
  char* base = at<char>(args.scratch);
  int64_t used = 0;
  const auto take = [&](int64_t bytes) {
    char* part = base + used;
    used += roundUp(bytes, 64);
    return part;
  };
  Scratch scratch;
  scratch.starts = reinterpret_cast<int32_t*>(take((static_cast<int64_t>(args.numExperts) + 1) * 4));
  scratch.pairRows = reinterpret_cast<int32_t*>(take(pairs * 4));
  scratch.pairOfSlot = reinterpret_cast<int32_t*>(take(pairs * 4));
  scratch.gateUp = reinterpret_cast<float*>(take(pairs * 2 * args.inner * 4));
  scratch.down = reinterpret_cast<float*>(take(pairs * args.hidden * 4));
  scratch.bytes = used;
  return scratch;
}

// Counting sort of the (row, j) pairs by expert; stable, so an expert's rows ascend.
void sortByExpert(const GranaryMoeExperts& args, const Scratch& scratch) {
  const int32_t* ids = at<const int32_t>(args.ids);
  const int64_t slots = static_cast<int64_t>(args.rows) * args.topK;
  const auto isExpert = [&](int32_t id) { return id >= 0 && id < args.numExperts; };
  memset(scratch.starts, 0, sizeof(int32_t) * static_cast<size_t>(args.numExperts + 1));
  for (int64_t s = 0; s < slots; ++s) {
    if (isExpert(ids[s])) ++scratch.starts[ids[s] + 1];
  }
  for (int32_t e = 0; e < args.numExperts; ++e) scratch.starts[e + 1] += scratch.starts[e];
  for (int64_t s = 0; s < slots; ++s) {
    if (!isExpert(ids[s])) {
      scratch.pairOfSlot[s] = -1;
      continue;
    }
    const int32_t pair = scratch.starts[ids[s]]++;
    scratch.pairOfSlot[s] = pair;
    scratch.pairRows[pair] = static_cast<int32_t>(s / args.topK);
  }
  for (int32_t e = args.numExperts; e > 0; --e) scratch.starts[e] = scratch.starts[e - 1];
  scratch.starts[0] = 0;
}

// One product for every expert that has pairs; `columns` outputs each, in pieces. productOf(expert,
// firstPair) describes it.
template <typename ProductOf>
void multiplyExperts(const GranaryMoeExperts& args, const Scratch& scratch, int64_t columns,
                     int64_t inColumns, ProductOf productOf) {
  const int64_t pairsAnExpert = 1 + static_cast<int64_t>(args.rows) * args.topK / args.numExperts;
  const int32_t pieces = numPieces(columns, pairsAnExpert * inColumns);
  forEachTask(args.numExperts * pieces, [&](int32_t task, int32_t thread) {
    const int32_t expert = task / pieces;
    const int64_t piece = task % pieces;
    const int64_t first = scratch.starts[expert];
    const ProductRange range = {
        .rowBegin = 0,
        .rowEnd = scratch.starts[expert + 1] - first,
        .columnBegin = columns * piece / pieces,
        .columnEnd = columns * (piece + 1) / pieces,
    };
    if (range.rowEnd > 0) multiplyRange(productOf(expert, first), range, workspaceOf(thread));
  });
}

const void* expertWeight(const GranaryMoeExperts& args, granary_address weight, int64_t elements) {
  return at<const char>(weight) + elements * (args.weightDtype == GRANARY_BF16 ? 2 : 4);
}

void combineRow(const GranaryMoeExperts& args, const Scratch& scratch, int64_t row) {
  float* out = at<float>(args.out) + row * args.outStride;
  const float* residual =
      args.residual == 0 ? nullptr : at<const float>(args.residual) + row * args.residualStride;
  const float* weights = at<const float>(args.weights) + row * args.topK;
  const int32_t* pairs = scratch.pairOfSlot + row * args.topK;
  for (int64_t begin = 0; begin < args.hidden; begin += kLanes) {
    const int count = static_cast<int>(args.hidden - begin < kLanes ? args.hidden - begin : kLanes);
    Vec16 sum = zero();
    for (int32_t j = 0; j < args.topK; ++j) {
      if (pairs[j] < 0) continue;
      const float* down = scratch.down + static_cast<int64_t>(pairs[j]) * args.hidden + begin;
      sum = fma(broadcast(weights[j]), count == kLanes ? load(down) : loadTail(down, count), sum);
    }
    if (residual != nullptr) {
      sum = add(sum, count == kLanes ? load(residual + begin) : loadTail(residual + begin, count));
    }
    if (count == kLanes) store(out + begin, sum);
    else storeTail(out + begin, sum, count);
  }
}

}  // namespace

int64_t moeScratchBytes(const GranaryMoeExperts& args) { return layOut(args).bytes; }

void moeExperts(const GranaryMoeExperts& args) {
  const Scratch scratch = layOut(args);
  const int64_t hidden = args.hidden;
  const int64_t inner = args.inner;
  const bool isBf16 = args.weightDtype == GRANARY_BF16;
  sortByExpert(args, scratch);
  multiplyExperts(args, scratch, 2 * inner, hidden, [&](int32_t expert, int64_t first) {
    return Product{
        .x = at<const float>(args.x),
        .xStride = args.xStride,
        .xRows = scratch.pairRows + first,
        .weight = expertWeight(args, args.gateUp, expert * 2 * inner * hidden),
        .weightIsBf16 = isBf16,
        .inColumns = hidden,
        .bias = args.gateUpBias == 0 ? nullptr : at<const float>(args.gateUpBias) + expert * 2 * inner,
        .residual = nullptr,
        .residualStride = 0,
        .out = scratch.gateUp + first * 2 * inner,
        .outStride = 2 * inner,
    };
  });
  forEachRange(scratch.starts[args.numExperts], 32 * inner, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t pair = begin; pair < end; ++pair) {
      float* gateUp = scratch.gateUp + pair * 2 * inner;
      gluRow(gateUp, gateUp, inner, args.activation);
    }
  });
  multiplyExperts(args, scratch, hidden, inner, [&](int32_t expert, int64_t first) {
    return Product{
        .x = scratch.gateUp + first * 2 * inner,
        .xStride = 2 * inner,
        .xRows = nullptr,
        .weight = expertWeight(args, args.down, expert * hidden * inner),
        .weightIsBf16 = isBf16,
        .inColumns = inner,
        .bias = args.downBias == 0 ? nullptr : at<const float>(args.downBias) + expert * hidden,
        .residual = nullptr,
        .residualStride = 0,
        .out = scratch.down + first * hidden,
        .outStride = hidden,
    };
  });
  forEachRange(args.rows, args.topK * hidden, [&](int64_t begin, int64_t end, int32_t) {
    for (int64_t r = begin; r < end; ++r) combineRow(args, scratch, r);
  });
}

}  // namespace granary::GRANARY_ISA
