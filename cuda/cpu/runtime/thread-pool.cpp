// The pool: workers spin for up to 50 us after their last task, then sleep in the kernel until the next fork.
//
// One word counts the tasks that nobody has taken yet. A thread takes a task by lowering it, and reads what
// the task is only afterwards: as long as a taken task is unfinished the caller cannot publish the next fork,
// so what is read belongs to it. A worker that wakes late finds nothing and delays nobody.
#include "thread-pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <atomic>
#include <new>

#include "library.h"

namespace granary {

namespace {

constexpr int64_t kSpinNs = 50'000;
// A fork and join costs about half a microsecond; this many element operations take two at least.
constexpr int64_t kMinPieceCost = 65'536;
constexpr int32_t kPiecesPerThread = 4;
// Some 20 us.
constexpr int kSpinsBeforeYield = 1000;

struct Worker {
  pthread_t handle;
  int32_t thread;
};

struct Pool {
  alignas(64) std::atomic<int32_t> untaken{0};
  alignas(64) std::atomic<int32_t> unfinished{0};
  alignas(64) std::atomic<uint32_t> wakeups{0};
  std::atomic<int32_t> sleepers{0};
  std::atomic<bool> stopping{false};
  TaskFunction function = nullptr;
  void* context = nullptr;
  int32_t numTasks = 0;
  int32_t numWorkers = 0;
  Worker* workers = nullptr;
};

Pool pool;

int64_t nowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Takes and runs one task; false when none is left.
bool runOne(int32_t thread) {
  int32_t untaken = pool.untaken.load(std::memory_order_acquire);
  do {
    if (untaken <= 0) return false;
  } while (!pool.untaken.compare_exchange_weak(untaken, untaken - 1, std::memory_order_acq_rel,
                                               std::memory_order_acquire));
  pool.function(pool.context, pool.numTasks - untaken, thread);
  pool.unfinished.fetch_sub(1, std::memory_order_acq_rel);
  return true;
}

// Spins until there is something to do, or sleeps when nothing came for a while.
void awaitTasks() {
  const int64_t deadline = nowNs() + kSpinNs;
  do {
    for (int i = 0; i < 64; ++i) {
      if (pool.untaken.load(std::memory_order_acquire) > 0 || pool.stopping.load(std::memory_order_relaxed))
        return;
      _mm_pause();
    }
  } while (nowNs() < deadline);
  const uint32_t seen = pool.wakeups.load(std::memory_order_seq_cst);
  pool.sleepers.fetch_add(1, std::memory_order_seq_cst);
  // The caller publishes tasks and then looks for sleepers, a worker counts itself and then looks for tasks:
  // one sees the other.
  if (pool.untaken.load(std::memory_order_seq_cst) <= 0 && !pool.stopping.load(std::memory_order_seq_cst)) {
    pool.wakeups.wait(seen, std::memory_order_seq_cst);
  }
  pool.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void wakeSleepers() {
  if (pool.sleepers.load(std::memory_order_seq_cst) == 0) return;
  pool.wakeups.fetch_add(1, std::memory_order_seq_cst);
  pool.wakeups.notify_all();
}

// The last tasks are running elsewhere. On a crowded machine their threads may need this processor.
void awaitEnd() {
  for (int spins = 0; pool.unfinished.load(std::memory_order_acquire) > 0; ++spins) {
    if (spins < kSpinsBeforeYield) _mm_pause();
    else sched_yield();
  }
}

// Round to nearest, subnormals kept, all exceptions masked: results must not depend on what a host program
// set.
constexpr unsigned kDefaultMxcsr = 0x1f80;

void* workerMain(void* argument) {
  const int32_t thread = static_cast<Worker*>(argument)->thread;
  _mm_setcsr(kDefaultMxcsr);
  while (!pool.stopping.load(std::memory_order_acquire)) {
    if (!runOne(thread)) awaitTasks();
  }
  return nullptr;
}

}  // namespace

bool startThreads(int32_t numThreads) {
  pool.stopping.store(false);
  pool.numWorkers = 0;
  if (numThreads == 1) return true;
  pool.workers = new (std::nothrow) Worker[static_cast<size_t>(numThreads - 1)];
  if (pool.workers == nullptr) return false;
  for (int32_t i = 0; i < numThreads - 1; ++i) {
    Worker& worker = pool.workers[i];
    worker.thread = i + 1;
    if (pthread_create(&worker.handle, nullptr, workerMain, &worker) != 0) {
      stopThreads();
      return false;
    }
    ++pool.numWorkers;
  }
  return true;
}

void stopThreads() {
  pool.stopping.store(true, std::memory_order_seq_cst);
  wakeSleepers();
  for (int32_t i = 0; i < pool.numWorkers; ++i) pthread_join(pool.workers[i].handle, nullptr);
  delete[] pool.workers;
  pool.workers = nullptr;
  pool.numWorkers = 0;
}

void runTasks(int32_t numTasks, TaskFunction function, void* context) {
  const unsigned mxcsr = _mm_getcsr();
  _mm_setcsr(kDefaultMxcsr);
  if (numTasks == 1 || pool.numWorkers == 0) {
    for (int32_t task = 0; task < numTasks; ++task) function(context, task, 0);
  } else if (numTasks > 1) {
    pool.function = function;
    pool.context = context;
    pool.numTasks = numTasks;
    pool.unfinished.store(numTasks, std::memory_order_relaxed);
    pool.untaken.store(numTasks, std::memory_order_seq_cst);
    wakeSleepers();
    while (runOne(0)) {
    }
    awaitEnd();
  }
  _mm_setcsr(mxcsr);
}

int32_t numPieces(int64_t count, int64_t itemCost) {
  if (count <= 0) return 0;
  const int64_t threads = numThreads();
  if (threads == 1) return 1;
  const int64_t worthwhile = count * (itemCost < 1 ? 1 : itemCost) / kMinPieceCost;
  int64_t pieces = threads * kPiecesPerThread;
  if (pieces > worthwhile) pieces = worthwhile;
  if (pieces > count) pieces = count;
  return pieces < 1 ? 1 : static_cast<int32_t>(pieces);
}

}  // namespace granary
