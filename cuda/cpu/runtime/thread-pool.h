// Fork and join over independent tasks. Which thread runs a task never changes what the task computes.
#pragma once
#include <stdint.h>

namespace granary {

// A task number counts from 0; `thread` names the computing thread (0 is the caller) for its own scratch.
using TaskFunction = void (*)(void* context, int32_t task, int32_t thread);

// Starts numThreads - 1 workers (none for 1). False when the system refuses a thread; then none is left
// running.
bool startThreads(int32_t numThreads);
void stopThreads();

// Runs every task once and returns when all are done. Not reentrant: tasks do not fork.
void runTasks(int32_t numTasks, TaskFunction function, void* context);

// The same for a lambda (task, thread).
template <typename Body>
inline void forEachTask(int32_t numTasks, Body body) {
  runTasks(
      numTasks,
      [](void* context, int32_t task, int32_t thread) { (*static_cast<Body*>(context))(task, thread); },
      &body);
}

// Pieces of `count` items of about `itemCost` element operations each that are worth a fork: enough
// operations a piece to repay it, and enough pieces a thread to even out their ends.
int32_t numPieces(int64_t count, int64_t itemCost);

// Calls body(begin, end, thread) over pieces of [0, count).
template <typename Body>
inline void forEachRange(int64_t count, int64_t itemCost, Body body) {
  const int32_t pieces = numPieces(count, itemCost);
  forEachTask(pieces, [&](int32_t piece, int32_t thread) {
    body(count * piece / pieces, count * (piece + 1) / pieces, thread);
  });
}

}  // namespace granary
