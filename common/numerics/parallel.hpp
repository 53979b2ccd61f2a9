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

/// Calls work(begin, end) for each piece of piece_length numbers from 0 to length - 1, the last one shorter,
/// as parallel_for() does. The pieces do not depend on the number of threads.
void parallel_pieces(std::int64_t length, std::int64_t piece_length, int threads,
                     const std::function<void(std::int64_t, std::int64_t)>& work);

}  // namespace softmax
