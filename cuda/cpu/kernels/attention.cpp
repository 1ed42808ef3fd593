// Attention over paged KV: splits the work into tasks (sequence, block of queries, KV head, some of its query heads) and lays out
// the scratch. The arithmetic is in attention-task.cpp.
// Bound: memory for decode (K and V are read once for all heads of a group), the fma units for prefill.
#include "attention-task.h"

namespace granary::GRANARY_ISA {

namespace {

// Scores of one task, 8 MiB: with fewer rows a long context would read K and V from memory once for every few rows.
constexpr int64_t kScoreFloats = 2 << 20;

int groupSize(const GranaryAttention& args) { return args.numQHeads / args.numKvHeads; }

// Positions that a query block may have to keep scores for.
int64_t maxSpan(const GranaryAttention& args) {
  const int64_t windowed = static_cast<int64_t>(args.windowLeft) + 1 + kMaxTaskRows;
  const int64_t longest = args.windowLeft < 0 || windowed > args.maxSeqLen ? args.maxSeqLen : windowed;
  return roundUp(longest, kLanes) + kLanes;
}

int64_t scoreFloats(const GranaryAttention& args) {
  const int64_t fewest = groupSize(args) < kMaxTaskRows ? groupSize(args) : kMaxTaskRows;
  const int64_t most = kMaxTaskRows * maxSpan(args);
  const int64_t wanted = most < kScoreFloats ? most : kScoreFloats;
  return fewest * maxSpan(args) > wanted ? fewest * maxSpan(args) : wanted;
}

struct Layout {
  int64_t startsBytes;  // int32 [numSeqs + 1]: first query block of a sequence
  int64_t scores, block, sums;  // floats of one thread
  int64_t threadFloats() const { return scores + block + sums; }
};

Layout layoutOf(const GranaryAttention& args) {
  const int64_t widest = args.headDim > args.vHeadDim ? args.headDim : args.vHeadDim;
  return {
      .startsBytes = roundUp((static_cast<int64_t>(args.numSeqs) + 1) * 4, 64),
      .scores = scoreFloats(args),
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

// Queries that one task takes of a sequence when it takes `heads` heads.
int64_t queriesATask(const GranaryAttention& args, int64_t sequence, int heads) {
  const int64_t length = at<const int32_t>(args.seqLens)[sequence];
  const int64_t windowed = static_cast<int64_t>(args.windowLeft) + 1 + kMaxTaskRows;
  const int64_t span = roundUp(args.windowLeft < 0 || windowed > length ? length : windowed, kLanes) + kLanes;
  const int64_t byScores = scoreFloats(args) / (span * heads);
  const int64_t byRows = kMaxTaskRows / heads;
  const int64_t queries = byScores < byRows ? byScores : byRows;
  return queries < 1 ? 1 : queries;
}

// Fills the sequences' first blocks and returns the number of all.
int64_t countBlocks(const GranaryAttention& args, int heads, int32_t* starts) {
  int64_t blocks = 0;
  for (int64_t s = 0; s < args.numSeqs; ++s) {
    starts[s] = static_cast<int32_t>(blocks);
    const int64_t queries = numQueries(args, s);
    if (queries > 0) blocks += (queries - 1) / queriesATask(args, s, heads) + 1;
  }
  starts[args.numSeqs] = static_cast<int32_t>(blocks);
  return blocks;
}

// Heads of a group that share a task: all of them, unless that leaves threads without work or passes the rows of a task.
int headsATask(const GranaryAttention& args, int32_t* starts) {
  const int group = groupSize(args);
  int pieces = (group + kMaxTaskRows - 1) / kMaxTaskRows;
  const int64_t tasks = countBlocks(args, (group + pieces - 1) / pieces, starts) * args.numKvHeads * pieces;
  if (tasks > 0 && tasks < numThreads()) pieces *= static_cast<int>((numThreads() + tasks - 1) / tasks);
  return pieces >= group ? 1 : (group + pieces - 1) / pieces;
}

// The sequence of a block: the last one that starts at or before it and is not empty.
int64_t sequenceOf(const int32_t* starts, int64_t numSeqs, int64_t block) {
  int64_t low = 0;
  int64_t high = numSeqs;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (starts[middle] <= block) low = middle;
    else high = middle;
  }
  return low;
}

AttentionTask taskOf(const GranaryAttention& args, const int32_t* starts, int heads, int64_t block, int headPiece) {
  const int group = groupSize(args);
  const int pieces = (group + heads - 1) / heads;
  const int64_t s = sequenceOf(starts, args.numSeqs, block);
  const int64_t perTask = queriesATask(args, s, heads);
  const int64_t firstQuery = (block - starts[s]) * perTask;
  const int64_t left = numQueries(args, s) - firstQuery;
  const int inGroup = headPiece % pieces * heads;
  return {
      .sequence = s,
      .firstRow = firstQueryRow(args, s) + firstQuery,
      .firstPosition = at<const int32_t>(args.seqLens)[s] - numQueries(args, s) + firstQuery,
      .numQueries = static_cast<int>(left < perTask ? left : perTask),
      .kvHead = headPiece / pieces,
      .firstHead = headPiece / pieces * group + inGroup,
      .numHeads = group - inGroup < heads ? group - inGroup : heads,
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
  const int heads = headsATask(args, starts);
  const int64_t blocks = countBlocks(args, heads, starts);
  const int headPieces = args.numKvHeads * ((groupSize(args) + heads - 1) / heads);
  forEachTask(static_cast<int32_t>(blocks * headPieces), [&](int32_t task, int32_t thread) {
    float* own = threads + thread * layout.threadFloats();
    const AttentionScratch scratch = {own, own + layout.scores, own + layout.scores + layout.block};
    // Later blocks see more keys: started first, they do not end last.
    const int64_t block = blocks - 1 - task / headPieces;
    runAttentionTask(args, taskOf(args, starts, heads, block, task % headPieces), scratch);
  });
}

}  // namespace granary::GRANARY_ISA
