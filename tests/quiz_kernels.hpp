#pragma once
// Small kernels that answer a question of a quiz. They are compiled and watched like a stage's.
#include <cstddef>
#include <vector>

/// Device memory of `count` floats; what they hold after `run`, on warps of that width.
std::vector<float> on_device(std::size_t count, int warp, void (*run)(float*));

void lanes_load_one_float(float* p);
void shared_memory_over_two_launches(float* p);
void first_warp_combines(float* p);  ///< 1 where a thread knows the total of all warps
void sum_by_xor(float* p);  ///< of 2^(lane % 24)
void sum_by_down(float* p);
void nothing_waits(float* p);  ///< as with a fence where a barrier belongs
void a_barrier_waits(float* p);
void some_threads_leave(float* p);
void some_shares_leave(float* p);
void partners(float* p);  ///< the lane whose value each lane got
void one_column_a_thread(float* p);  ///< 1024 threads, 256 columns
void vectors_of_row_1(float* p);  ///< of 781 columns, from its first element on
void one_lane_loads_7(float* p);  ///< one after another
void lanes_load_7(float* p);  ///< one each
void blocks_load_rows(float* p);
void blocks_ask_ahead(float* p);  ///< and each asks the cache for the row of the next
