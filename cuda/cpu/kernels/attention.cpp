// Attention over paged KV: splits the work into tasks (sequence, block of queries, some query heads) and lays
// out the scratch. The arithmetic is in attention-task.cpp, attention-scores.cpp and attention-values.cpp.
// Bound: memory for decode (K and V are read once for all heads of a group), the fma units for prefill.
#include "attention-keys.h"
#include "attention-task.h"

namespace granary::GRANARY_ISA {

namespace {

// Scores of one task, 8 MiB: with fewer rows a long context would read K and V from memory once for every few
// rows.
constexpr int64_t kScoreFloats = 2 << 20;

int groupSize(const GranaryAttention& args) { return args.numQHeads / args.numKvHeads; }

// Floats that the scores of one row may take, with the odd line between rows.
int64_t rowFloats(const GranaryAttention& args, int64_t length) {
  const int64_t windowed = static_cast<int64_t>(args.windowLeft) + 1 + kMaxTaskRows;
  return roundUp(args.windowLeft < 0 || windowed > length ? length : windowed, kLanes) + 2 * kLanes;
}

// Room for as many rows as a task may have, within the bound; at least for one query and the heads of a
// group.
int64_t scoreFloats(const GranaryAttention& args) {
  const int64_t row = rowFloats(args, args.maxSeqLen);
  const int64_t fewest = row * (groupSize(args) < kMaxTaskRows ? groupSize(args) : kMaxTaskRows);
  const int64_t wanted = row * kMaxTaskRows < kScoreFloats ? row * kMaxTaskRows : kScoreFloats;
  return fewest > wanted ? fewest : wanted;
}

struct Layout {
  int64_t startsBytes;          // int32 [numSeqs + 1]: first task of a sequence
  int64_t scores, block, sums;  // floats of one thread
  int64_t threadFloats() const { return scores + block + sums; }
};

Layout layoutOf(const GranaryAttention& args) {
  const int64_t widest = args.headDim > args.vHeadDim ? args.headDim : args.vHeadDim;
  return {
      .startsBytes = roundUp((static_cast<int64_t>(args.numSeqs) + 1) * 4, 64),
      .scores = roundUp(scoreFloats(args), kLanes),
      .block = kKeyBlock * roundUp(widest, kLanes),
      .sums = kMaxTaskRows * roundUp(args.vHeadDim, kLanes),
  };
}

int64_t firstQueryRow(const GranaryAttention& args, int64_t sequence) {
  return args.queryStarts == 0 ? sequence * args.tokensPerRow : at<const int32_t>(args.queryStarts)[sequence];
}

int64_t numQueries(const GranaryAttention& args, int64_t sequence) {
  if (at<const int32_t>(args.seqLens)[sequence] <= 0) return 0;
  return firstQueryRow(args, sequence + 1) - firstQueryRow(args, sequence);
}

// How the work of one sequence is cut.
struct Cut {
  int heads;        // of a task
  int headPieces;   // tasks side by side
  int64_t queries;  // of a task
  int64_t blocks;   // tasks one after another
};

// The fewest of a task's bounds: rows, scores, and one query at least.
int64_t queriesATask(const GranaryAttention& args, int64_t length, int heads) {
  const int64_t byScores = scoreFloats(args) / (rowFloats(args, length) * heads);
  const int64_t byRows = kMaxTaskRows / heads;
  const int64_t queries = byScores < byRows ? byScores : byRows;
  return queries < 1 ? 1 : queries;
}

// A sequence with few queries is read row by row with all KV heads, as it lies in memory; one with many takes
// a KV head a task, whose keys stay in L1 for all its queries. `split` asks for that many times more tasks,
// down to single heads.
Cut cutOf(const GranaryAttention& args, int64_t sequence, int split) {
  const int group = groupSize(args);
  const int64_t queries = numQueries(args, sequence);
  const int64_t length = at<const int32_t>(args.seqLens)[sequence];
  const bool isShort = queries * args.numQHeads <= kMaxTaskRows &&
                       queries <= queriesATask(args, length, args.numQHeads) &&
                       rowFloats(args, length) * args.numQHeads <= scoreFloats(args);
  const int base = isShort ? args.numQHeads : group < kMaxTaskRows ? group : kMaxTaskRows;
  int heads = (base + split - 1) / split;
  if (heads > group) heads = heads / group * group;
  Cut cut;
  cut.heads = heads;
  cut.headPieces =
      heads >= group ? (args.numQHeads + heads - 1) / heads : args.numKvHeads * ((group + heads - 1) / heads);
  cut.queries = queriesATask(args, length, heads);
  cut.blocks = queries == 0 ? 0 : (queries - 1) / cut.queries + 1;
  return cut;
}

// Fills the sequences' first tasks and returns the number of all.
int64_t countTasks(const GranaryAttention& args, int split, int32_t* starts) {
  int64_t tasks = 0;
  for (int64_t s = 0; s < args.numSeqs; ++s) {
    starts[s] = static_cast<int32_t>(tasks);
    const Cut cut = cutOf(args, s, split);
    tasks += cut.blocks * cut.headPieces;
  }
  starts[args.numSeqs] = static_cast<int32_t>(tasks);
  return tasks;
}

// The sequence of a task: the last one that starts at or before it.
int64_t sequenceOf(const int32_t* starts, int64_t numSeqs, int64_t task) {
  int64_t low = 0;
  int64_t high = numSeqs;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (starts[middle] <= task) low = middle;
    else high = middle;
  }
  return low;
}

AttentionTask taskOf(const GranaryAttention& args, const int32_t* starts, int split, int64_t number) {
  const int64_t s = sequenceOf(starts, args.numSeqs, number);
  const Cut cut = cutOf(args, s, split);
  const int64_t block = (number - starts[s]) / cut.headPieces;
  const int piece = static_cast<int>((number - starts[s]) % cut.headPieces);
  const int group = groupSize(args);
  // Pieces of a group do not reach into the next one.
  const int piecesAGroup = cut.heads >= group ? 1 : (group + cut.heads - 1) / cut.heads;
  const int firstHead = cut.heads >= group ? piece * cut.heads
                                           : piece / piecesAGroup * group + piece % piecesAGroup * cut.heads;
  const int endHead = cut.heads >= group ? args.numQHeads : (piece / piecesAGroup + 1) * group;
  const int64_t firstQuery = block * cut.queries;
  const int64_t left = numQueries(args, s) - firstQuery;
  return {
      .sequence = s,
      .firstRow = firstQueryRow(args, s) + firstQuery,
      .firstPosition = at<const int32_t>(args.seqLens)[s] - numQueries(args, s) + firstQuery,
      .numQueries = static_cast<int>(left < cut.queries ? left : cut.queries),
      .firstHead = firstHead,
      .numHeads = endHead - firstHead < cut.heads ? endHead - firstHead : cut.heads,
  };
}

}  // namespace

int64_t attentionScratchBytes(const GranaryAttention& args) {
  const Layout layout = layoutOf(args);
  return layout.startsBytes + layout.threadFloats() * 4 * numThreads();
}

void attention(const GranaryAttention& args) {
  const Layout layout = layoutOf(args);
  int32_t* starts = at<int32_t>(args.scratch);
  float* threads = at<float>(args.scratch + static_cast<granary_address>(layout.startsBytes));
  int split = 1;
  int64_t tasks = countTasks(args, split, starts);
  while (tasks > 0 && tasks < numThreads() && split < args.numQHeads)
    tasks = countTasks(args, split *= 2, starts);
  forEachTask(static_cast<int32_t>(tasks), [&](int32_t task, int32_t thread) {
    float* own = threads + thread * layout.threadFloats();
    const AttentionScratch scratch = {own, own + layout.scores, own + layout.scores + layout.block};
    // Later blocks see more keys: started first, they do not end last.
    runAttentionTask(args, taskOf(args, starts, split, tasks - 1 - task), scratch);
  });
}

}  // namespace granary::GRANARY_ISA
