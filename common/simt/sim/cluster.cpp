// Clusters: blocks that take turns, their barrier, and what they send to each other's shared memory.
#include <algorithm>
#include <cstring>
#include <set>

#include "simt/sim/internal.hpp"

namespace simt {
inline namespace sim {
namespace detail {

std::optional<std::uint64_t> cluster_group::next(const std::function<std::optional<std::uint64_t>()>& pick) {
  if (members.size() == 1) {
    left_[0] = 0;
    idle_ = arrived_ = 0;
    phase_ = 0;
    return pick();
  }
  std::unique_lock lock(guard_);
  if (abandoned_) return std::nullopt;
  const std::uint64_t mine = round_;
  if (++waiting_ == static_cast<int>(members.size())) {
    waiting_ = 0;
    ++round_;
    picked_ = pick();
    turn_ = idle_ = arrived_ = 0;
    phase_ = 0;
    std::fill(left_.begin(), left_.end(), 0);
    changed_.notify_all();
  } else {
    changed_.wait(lock, [&] { return abandoned_ || round_ != mine; });
  }
  return abandoned_ ? std::nullopt : picked_;
}

cluster_group::turn cluster_group::wait_for_turn(int rank, std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [&] { return abandoned_ || turn_ == rank; });
  return abandoned_ ? turn::abandoned : turn::mine;
}

/// The next block that has not left takes its turn; the caller's own block if there is no other.
void cluster_group::hand_on(int rank) {
  const auto blocks = static_cast<int>(members.size());
  for (int k = 1; k <= blocks; ++k)
    if (turn_ = (rank + k) % blocks; !has_left(turn_)) break;
  changed_.notify_all();
}

cluster_group::turn cluster_group::take(int rank) {
  if (members.size() == 1) return turn::mine;
  std::unique_lock lock(guard_);
  return wait_for_turn(rank, lock);
}

cluster_group::turn cluster_group::pass(int rank, bool went_on) {
  std::unique_lock lock(guard_);
  idle_ = went_on ? 0 : idle_ + 1;
  if (idle_ > std::count(left_.begin(), left_.end(), 0)) return turn::stuck;
  hand_on(rank);
  return wait_for_turn(rank, lock);
}

void cluster_group::leave(int rank) {
  const std::scoped_lock lock(guard_);
  left_[static_cast<std::size_t>(rank)] = 1;
  idle_ = 0;
  hand_on(rank);
}

void cluster_group::abandon() {
  const std::scoped_lock lock(guard_);
  abandoned_ = members.size() > 1;
  changed_.notify_all();
}

void worker::arrive_at_cluster() {
  if (++arrived_threads_ < static_cast<int>(job->block.x * job->block.y * job->block.z)) return;
  arrived_threads_ = 0;
  group->arrive();
}

/// Lets threads go on whose phase has ended, and the block if the cluster has met.
std::optional<fault_info> worker::wake(bool& woke) {
  const int threads = static_cast<int>(job->block.x * job->block.y * job->block.z);
  int at_cluster = 0, elsewhere = -1, at_bytes = 0;
  const lane* first = nullptr;
  woke = false;
  for (int t = 0; t < threads; ++t) {
    lane& l = lanes_[t];
    if (l.state == lane_state::at_byte_barrier) {
      ++at_bytes;
      if (barriers_.at(l.awaited).phase % 2 == l.parity) continue;
      l.state = lane_state::ready;
      --waiting_for_others_;
      woke = true;
    } else if (l.state == lane_state::at_cluster_barrier) {
      ++at_cluster;
      if (!first) first = &l;
      if (!(l.site == first->site)) elsewhere = t;
    } else if (elsewhere < 0) {
      elsewhere = t;
    }
  }
  if (at_cluster == 0 || at_bytes > 0) return std::nullopt;
  if (at_cluster < threads || elsewhere >= 0)
    return fault_info{.kind = fault_kind::divergent_barrier,
                      .block = block_,
                      .thread = first->linear,
                      .site = first->site,
                      .text = "reached by " + std::to_string(at_cluster) + " of " + std::to_string(threads) +
                              " threads; thread " + std::to_string(elsewhere) +
                              " is the first that has left or waits elsewhere",
                      .next = "let every thread of every block of the cluster wait at the same place"};
  if (group->phase() == passed_) return std::nullopt;
  ++passed_;
  waiting_for_others_ = 0;
  order_block();
  woke = true;
  return std::nullopt;
}

/// Nobody in the cluster can go on, and this block is one of those that wait.
fault_info worker::stuck_fault() const {
  const auto waiting = std::find_if(lanes_.begin(), lanes_.end(), [](const lane& l) {
    return l.state == lane_state::at_byte_barrier || l.state == lane_state::at_cluster_barrier;
  });
  fault_info f{
      .kind = fault_kind::deadlock, .block = block_, .thread = waiting->linear, .site = waiting->site};
  if (waiting->state == lane_state::at_cluster_barrier) {
    f.text = "waits for the blocks of its cluster, and not all of their threads have arrived";
    f.next = "let every thread of the cluster pass cluster_arrive() before cluster_wait(), as often";
    return f;
  }
  const barrier_state& b = barriers_.at(waiting->awaited);
  f.text = "waits for phase " + std::to_string(b.phase) + " of a barrier, to which " +
           std::to_string(b.pending) + " arrivals and " + std::to_string(b.bytes) +
           " bytes are still to come";
  f.next = "count the arrivals of set_up() and the bytes of expect() again, and the parity of wait()";
  return f;
}

/// What is under way arrives, where somebody waits for it.
void worker::deliver() {
  if (under_way_.empty()) return;
  std::set<const byte_barrier*> awaited;
  for (const lane& l : lanes_)
    if (l.state == lane_state::at_byte_barrier) awaited.insert(l.awaited);
  std::erase_if(under_way_, [&](const parcel& p) {
    if (!awaited.contains(p.barrier)) return false;
    std::memcpy(reinterpret_cast<void*>(p.to), p.bytes.data(), p.bytes.size());
    std::memset(written_flags(p.to, p.bytes.size()), 1, p.bytes.size());
    barrier_state& b = barriers_.at(p.barrier);
    b.bytes -= static_cast<std::int64_t>(p.bytes.size());
    b.complete();
    return true;
  });
}

/// The block stops where it stands: its fibers are dropped, not unwound, and their stacks used again.
void worker::abandon_block() {
  drop_fibers();
  for (warp& w : warps_) w.log.discard();
}

barrier_state& worker::state_of(const byte_barrier& b, const char* file, int line) {
  const auto found = barriers_.find(&b);
  if (found == barriers_.end())
    fail(
        {.kind = fault_kind::uninitialised,
         .site = {file, line},
         .text = "the barrier was not set up",
         .next =
             "let one thread call set_up() and publish_barriers(), and all others wait for it at a barrier"});
  return found->second;
}

void worker::set_up(const byte_barrier& b, int arrivals) { barriers_[&b] = {arrivals, arrivals, 0, 0}; }

void worker::arrive_at(const byte_barrier& b, std::int64_t bytes, const char* file, int line) {
  barrier_state& state = state_of(b, file, line);
  if (state.pending == 0)
    fail({.kind = fault_kind::deadlock,
          .site = {file, line},
          .text = "arrives at a barrier to which all " + std::to_string(state.arrivals) +
                  " arrivals of the phase have come",
          .next = "set it up for as many arrivals as there are, or wait for the phase before the next one"});
  --state.pending;
  state.bytes += bytes;
  state.complete();
}

void worker::wait_for(const byte_barrier& b, unsigned parity, const char* file, int line) {
  if (state_of(b, file, line).phase % 2 != parity) return;
  current->awaited = &b;
  current->parity = parity;
  ++waiting_for_others_;
  wait(lane_state::at_byte_barrier, file, line);
}

void worker::wait_for_cluster(const char* file, int line) {
  ++waiting_for_others_;
  wait(lane_state::at_cluster_barrier, file, line);
}

/// Bytes that are still under way when the block has run to its end.
std::optional<fault_info> worker::lost_bytes() const {
  if (under_way_.empty()) return std::nullopt;
  const parcel& p = under_way_.front();
  return fault_info{.kind = fault_kind::use_after_free,
                    .block = p.from_block,
                    .thread = p.from_thread,
                    .site = p.site,
                    .text = std::to_string(p.bytes.size()) +
                            " bytes are on their way into a block that has left the kernel",
                    .next = "let the block that they go to wait for them before it leaves"};
}

/// One flag a byte of this block's shared memory; nullptr if it is elsewhere.
unsigned char* worker::written_flags(std::uintptr_t address, std::size_t size) {
  const auto dynamic_begin = reinterpret_cast<std::uintptr_t>(dynamic_shared);
  if (address - tls_begin_ < tls_bytes_ && size <= tls_bytes_ - (address - tls_begin_))
    return static_written_.data() + (address - tls_begin_);
  if (address - dynamic_begin < job->shared_bytes && size <= job->shared_bytes - (address - dynamic_begin))
    return dynamic_written_.data() + (address - dynamic_begin);
  return nullptr;
}

void worker::copy_chunk(const void* pc, void* to, const void* from, int bytes, const byte_barrier& b,
                        const char* file, int line) {
  state_of(b, file, line);
  const auto target = reinterpret_cast<std::uintptr_t>(to), source = reinterpret_cast<std::uintptr_t>(from);
  const auto size = static_cast<unsigned>(bytes);
  unsigned char* written = written_flags(target, size);
  fault_info f{.pc = pc, .address = target, .size = size, .write = true, .where = space::shared};
  if (!written) {
    f.kind = fault_kind::out_of_bounds;
    f.text = "outside the shared memory of the block";
    f.next = "keep the chunk inside the array that it is copied to";
    fail(std::move(f));
  }
  if (target % 16 != 0 || source % 16 != 0 || bytes % 16 != 0 || bytes <= 0) {
    f.kind = fault_kind::misaligned;
    f.text = "a chunk of " + std::to_string(bytes) + " bytes, at " + std::to_string(source % 16) +
             " bytes behind a multiple of 16, goes to one " + std::to_string(target % 16) + " bytes behind";
    f.next = "copy a positive multiple of 16 bytes between multiples of 16";
    fail(std::move(f));
  }
  check_global(pc, source, size, false);
  block_extents_.push_back({source, source + size, block_, pc, current->linear, size, false});
  line_traffic moved;
  moved.requests = moved.lanes = 1;
  moved.bytes = moved.distinct_bytes = size;
  moved.sectors = moved.ideal_sectors = (source + size - 1) / sector_bytes - source / sector_bytes + 1;
  totals.global_load += moved;
  if (job->by_line) static_cast<line_traffic&>(statements[{pc, false, space::global}]) += moved;
  const auto* begin = static_cast<const unsigned char*>(from);
  under_way_.push_back({{begin, begin + size}, target, &b, block_, current->linear, {file, line}});
  std::memset(to, 0xff, size);
  std::memset(written, 0, size);
}

/// Where another block of the cluster has what is at p in this one.
std::uintptr_t worker::place_in(const worker& other, const void* pc, const void* p, unsigned size) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  fault_info f{.pc = pc, .address = address, .size = size, .write = true, .where = space::shared};
  if (!written_flags(address, size)) {
    f.kind = fault_kind::out_of_bounds;
    f.text = "outside the shared memory of a block";
    f.next = "name a place in this block's __shared__ memory; it is the same place in the other's";
    fail(std::move(f));
  }
  if (address % size != 0) {
    f.kind = fault_kind::misaligned;
    f.text = "the address is no multiple of " + std::to_string(size);
    f.next = "make the address a multiple of the access size, as with alignas(8)";
    fail(std::move(f));
  }
  if (group->has_left(other.rank)) {
    f.kind = fault_kind::use_after_free;
    f.text =
        "block " + std::to_string(other.rank) + " of the cluster has left the kernel, and its memory is gone";
    f.next = "let every block wait until what the others send has come";
    fail(std::move(f));
  }
  return address - tls_begin_ < tls_bytes_ ? address - tls_begin_ + other.tls_begin_
                                           : address - reinterpret_cast<std::uintptr_t>(dynamic_shared) +
                                                 reinterpret_cast<std::uintptr_t>(other.dynamic_shared);
}

namespace {
struct pair_of_floats {
  float a, b;
};
}  // namespace

void worker::store_pair(const void* pc, void* p, int to, float a, float b) {
  worker& other = *group->members.at(static_cast<std::size_t>(to));
  const std::uintptr_t there = place_in(other, pc, p, sizeof(pair_of_floats));
  const pair_of_floats value{a, b};
  std::memcpy(reinterpret_cast<void*>(there), &value, sizeof value);
  std::memset(other.written_flags(there, sizeof value), 1, sizeof value);
}

void worker::send_pair(const void* pc, void* p, const byte_barrier& barrier, int to, float a, float b,
                       const char* file, int line) {
  state_of(barrier, file, line);
  worker& other = *group->members.at(static_cast<std::size_t>(to));
  const std::uintptr_t there = place_in(other, pc, p, sizeof(pair_of_floats));
  const auto* counted = reinterpret_cast<const byte_barrier*>(place_in(other, pc, &barrier, sizeof barrier));
  if (!other.barriers_.contains(counted))
    fail({.kind = fault_kind::uninitialised,
          .site = {file, line},
          .text = "block " + std::to_string(to) + " of the cluster has not set up the barrier yet",
          .next = "let the whole cluster pass cluster_arrive_relaxed() and cluster_wait() after set_up()"});
  const pair_of_floats value{a, b};
  parcel sent{
      std::vector<unsigned char>(sizeof value), there, counted, block_, current->linear, {file, line}};
  std::memcpy(sent.bytes.data(), &value, sizeof value);
  other.under_way_.push_back(std::move(sent));
  std::memset(reinterpret_cast<void*>(there), 0xff, sizeof value);
  std::memset(other.written_flags(there, sizeof value), 0, sizeof value);
}

}  // namespace detail

using namespace detail;

unsigned cluster_id() noexcept {
  return running->block_index.x / static_cast<unsigned>(running->job->cluster_blocks);
}
unsigned cluster_count() noexcept {
  return running->job->grid.x / static_cast<unsigned>(running->job->cluster_blocks);
}
int cluster_blocks() noexcept { return running->job->cluster_blocks; }
int cluster_rank() noexcept { return running->rank; }

void cluster_arrive() {
  const inside_simulator inside;
  inside.w.arrive_at_cluster();
}
void cluster_wait(const char* file, int line) {
  const inside_simulator inside;
  inside.w.wait_for_cluster(file, line);
}
void store_pair(void* p, int rank, float a, float b) {
  const inside_simulator inside;
  inside.w.store_pair(__builtin_return_address(0), p, rank, a, b);
}

void set_up(byte_barrier& b, int arrivals) {
  const inside_simulator inside;
  inside.w.set_up(b, arrivals);
}
void expect(byte_barrier& b, int bytes, const char* file, int line) {
  const inside_simulator inside;
  inside.w.arrive_at(b, bytes, file, line);
}
void arrive(byte_barrier& b, const char* file, int line) {
  const inside_simulator inside;
  inside.w.arrive_at(b, 0, file, line);
}
void wait(byte_barrier& b, unsigned parity, const char* file, int line) {
  const inside_simulator inside;
  inside.w.wait_for(b, parity, file, line);
}
void copy_chunk(void* to, const void* from, int bytes, byte_barrier& b, const char* file, int line) {
  const inside_simulator inside;
  inside.w.copy_chunk(__builtin_return_address(0), to, from, bytes, b, file, line);
}
void send_pair(void* p, byte_barrier& barrier, int rank, float a, float b, const char* file, int line) {
  const inside_simulator inside;
  inside.w.send_pair(__builtin_return_address(0), p, barrier, rank, a, b, file, line);
}

}  // namespace sim
}  // namespace simt
