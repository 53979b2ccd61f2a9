#pragma once
/// @file
/// One loop, shared by several threads.
#include <cstdint>
#include <functional>

namespace softmax {

/// Cores of this machine, at least 1.
int cores();
/// Threads that `pieces` pieces of work keep busy: one a core, one a piece, at least 1.
int threads_for(std::int64_t pieces);

/// Calls work(i, thread) once for each piece i from 0 to pieces - 1, in no order, on threads 0 to threads -
/// 1, the caller's among them. Returns when all are done. Throws what a call threw, one of them if several
/// did; the pieces that had not begun by then are left out.
void parallel_for(std::int64_t pieces, int threads, const std::function<void(std::int64_t, int)>& work);

}  // namespace softmax
