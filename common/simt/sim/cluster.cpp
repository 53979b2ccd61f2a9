// Clusters: blocks that take turns, their barrier, and what they send to each other's shared memory.
#include <algorithm>
#include <cstring>

#include "simt/sim/internal.hpp"

namespace simt {
inline namespace sim {
namespace detail {

namespace {
struct pair_of_floats {
  float a, b;
};
}  // namespace

std::optional<std::uint64_t> cluster_group::next(int rank,
                                                 const std::function<std::optional<std::uint64_t>()>& pick) {
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
    if (picked_)
      changed(turn_).notify_one();
    else
      wake_all();
  }
  changed(rank).wait(lock, [&] { return abandoned_ || (round_ != mine && (!picked_ || turn_ == rank)); });
  return abandoned_ ? std::nullopt : picked_;
}

cluster_group::turn cluster_group::wait_for_turn(int rank, std::unique_lock<std::mutex>& lock) {
  changed(rank).wait(lock, [&] { return abandoned_ || turn_ == rank; });
  return abandoned_ ? turn::abandoned : turn::mine;
}

/// The next block that has not left takes its turn; the caller's own block if there is no other.
void cluster_group::hand_on(int rank) {
  const auto blocks = static_cast<int>(members.size());
  for (int k = 1; k <= blocks; ++k)
    if (turn_ = (rank + k) % blocks; !has_left(turn_)) break;
  changed(turn_).notify_one();
}

void cluster_group::wake_all() {
  for (std::condition_variable& c : changed_) c.notify_one();
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
  wake_all();
}

void worker::arrive_at_cluster(bool relaxed, const char* file, int line) {
  if (current->cluster_arrivals > passed_)
    fail({.kind = fault_kind::divergent_barrier,
          .site = {file, line},
          .text = "arrives at the barrier of the cluster again before it has waited for it",
          .next = "let each thread call cluster_arrive() and cluster_wait() in turn"});
  ++current->cluster_arrivals;
  relaxed_arrivals_.resize(current->cluster_arrivals);
  if (relaxed) relaxed_arrivals_.back() = true;
  if (++arrived_threads_ < job->threads()) return;
  arrived_threads_ = 0;
  group->arrive();
}

/// Lets threads go on whose phase has ended, and the block if the cluster has met.
std::optional<fault_info> worker::wake(bool& woke) {
  const int threads = job->threads();
  const lane* const first = first_at(lane_state::at_cluster_barrier);
  int at_cluster = 0, elsewhere = -1, at_bytes = 0;
  woke = false;
  for (int t = 0; t < threads; ++t) {
    lane& l = lanes_[t];
    if (l.state == lane_state::at_transaction_barrier) {
      ++at_bytes;
      if (barriers_.at(l.awaited).phase % 2 == l.parity) continue;
      l.state = lane_state::ready;
      --waiting_for_others_;
      woke = true;
    } else if (l.state == lane_state::at_cluster_barrier && l.site == first->site) {
      ++at_cluster;
    } else if (elsewhere < 0) {
      elsewhere = t;
    }
  }
  if (at_cluster == 0 || at_bytes > 0) return std::nullopt;
  if (at_cluster < threads)
    return fault_info{.kind = fault_kind::divergent_barrier,
                      .block = block_,
                      .thread = first->linear,
                      .site = first->site,
                      .text = "reached by " + std::to_string(at_cluster) + " of " + std::to_string(threads) +
                              " threads; thread " + std::to_string(elsewhere) +
                              " is the first that has left or waits elsewhere",
                      .next = "let every thread of every block of the cluster wait at the same place"};
  if (group->phase() == passed_) return std::nullopt;
  waiting_for_others_ = 0;
  order_block();
  ++passed_;
  ++totals.barriers;
  woke = true;
  return std::nullopt;
}

/// The first thread in this state; nullptr if there is none.
const lane* worker::first_at(lane_state state) const {
  const int threads = job->threads();
  const auto found = std::find_if(lanes_.begin(), lanes_.begin() + threads,
                                  [state](const lane& l) { return l.state == state; });
  return found == lanes_.begin() + threads ? nullptr : &*found;
}

/// Nobody in the cluster can go on. Who waits for bytes or arrivals that do not come tells more than who
/// waits for those threads.
fault_info worker::stuck_fault() const {
  fault_info f{.kind = fault_kind::deadlock};
  for (const worker* w : group->members) {
    const lane* waiting =
        group->has_left(w->rank) ? nullptr : w->first_at(lane_state::at_transaction_barrier);
    if (!waiting) continue;
    const barrier_state& b = w->barriers_.at(waiting->awaited);
    f.block = w->block_;
    f.thread = waiting->linear;
    f.site = waiting->site;
    f.text = "waits for the end of phase " + std::to_string(b.phase) + " of a barrier, to which " +
             std::to_string(b.pending) + " arrivals and " + std::to_string(b.bytes) +
             " bytes are still to come";
    f.next =
        "count the arrivals of barrier_init() and the bytes of barrier_arrive_expect() again, and the parity";
    return f;
  }
  const lane* waiting = first_at(lane_state::at_cluster_barrier);
  f.block = block_;
  f.thread = waiting->linear;
  f.site = waiting->site;
  f.text = "waits for the blocks of its cluster, and not all of their threads have arrived";
  f.next = "let every thread of the cluster pass cluster_arrive() before cluster_wait(), as often";
  return f;
}

/// What is under way arrives, where somebody waits for it: what was sent last comes first, and no more than
/// ends the phase.
void worker::deliver() {
  for (const lane& l : lanes_) {
    if (l.state != lane_state::at_transaction_barrier) continue;
    barrier_state& b = barriers_.at(l.awaited);
    for (std::size_t i = under_way_.size(); i > 0 && b.phase % 2 == l.parity; --i) {
      const pending_write& p = under_way_[i - 1];
      if (p.barrier != l.awaited) continue;
      std::memcpy(reinterpret_cast<void*>(p.to), p.bytes.data(), p.bytes.size());
      std::memset(written_flags(p.to, p.bytes.size()), 1, p.bytes.size());
      b.bytes -= static_cast<std::int64_t>(p.bytes.size());
      if (p.from_block == block_) {
        std::uint64_t& known = b.arriving[static_cast<std::size_t>(p.from_thread / job->warp_size)];
        known = std::max(known, p.epoch);
      }
      under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(i - 1));
      b.complete();
    }
  }
}

/// The block stops where it stands: its fibers are dropped, not unwound, and their stacks used again.
void worker::abandon_block() {
  drop_fibers();
  for (warp& w : warps_) w.log.discard();
}

barrier_state& worker::state_of(const transaction_barrier& b, const char* file, int line) {
  fault_info f{.kind = fault_kind::uninitialised, .site = {file, line}};
  const auto found = barriers_.find(&b);
  if (found == barriers_.end()) {
    f.text = "the barrier was not set up";
    f.next = "let one thread call barrier_init() and barrier_publish(), and all others wait at a barrier";
    fail(std::move(f));
  }
  const barrier_state& state = found->second;
  const bool same_warp = state.setter / job->warp_size == current->warp;
  if (state.setter != current->linear && state.block_meetings == meetings_ &&
      !(same_warp && state.warp_meetings != warps_[current->warp].meetings)) {
    f.text = "thread " + std::to_string(state.setter) +
             " sets the barrier up, and nothing stands between that and this use of it";
    f.next =
        "put a __syncthreads() behind barrier_init(), or the barrier of the cluster if other blocks use it";
    fail(std::move(f));
  }
  return found->second;
}

void worker::require_published(const barrier_state& b, std::uint64_t block, const char* file, int line) {
  if (b.published) return;
  fail({.kind = fault_kind::uninitialised,
        .site = {file, line},
        .text = "the barrier of block " + std::to_string(block) + " was set up and not published",
        .next = "call barrier_publish() behind barrier_init(), in the same thread"});
}

void worker::init(const transaction_barrier& b, int arrivals, const char* file, int line) {
  fault_info f{.kind = fault_kind::out_of_bounds, .site = {file, line}};
  if (!written_flags(reinterpret_cast<std::uintptr_t>(&b), sizeof b)) {
    f.text = "sets up a barrier outside shared memory";
    f.next = "declare it __shared__";
    fail(std::move(f));
  }
  if (arrivals < 1) {
    f.kind = fault_kind::deadlock;
    f.text = "sets up a barrier of " + std::to_string(arrivals) + " arrivals a phase";
    f.next = "count who arrives in each phase: at least 1";
    fail(std::move(f));
  }
  if (const auto known = barriers_.find(&b); known != barriers_.end()) {
    f.kind = fault_kind::deadlock;
    f.text = "sets up a barrier that thread " + std::to_string(known->second.setter) + " has set up";
    f.next = "let one thread do it, once: phases follow each other by themselves";
    fail(std::move(f));
  }
  barrier_state state;
  state.setter = current->linear;
  state.warp_meetings = warps_[current->warp].meetings;
  state.block_meetings = meetings_;
  state.arrivals = state.pending = arrivals;
  barriers_[&b] = state;
}

void worker::publish() {
  for (auto& [where, state] : barriers_) state.published |= state.setter == current->linear;
}

void worker::arrive_at(const transaction_barrier& b, std::int64_t bytes, const char* file, int line) {
  barrier_state& state = state_of(b, file, line);
  fault_info f{.kind = fault_kind::deadlock, .site = {file, line}};
  if (bytes < 0) {
    f.text = "expects " + std::to_string(bytes) + " bytes";
    f.next = "expect as many bytes as are copied or sent, 0 or more";
    fail(std::move(f));
  }
  if (state.pending == 0) {
    f.text = "arrives at a barrier to which all " + std::to_string(state.arrivals) +
             " arrivals of the phase have come";
    f.next = "set it up for as many arrivals as there are, or wait for the phase before the next one";
    fail(std::move(f));
  }
  // All that the warp has done, or knows to have been done, comes before the end of the phase.
  warp& w = warps_[current->warp];
  for (int other = 0; other < most_warps; ++other) {
    std::uint64_t& known = state.arriving[static_cast<std::size_t>(other)];
    known =
        std::max(known, other == current->warp ? w.epoch : recent_accesses_.ordered(other, current->warp));
  }
  w.epoch = ++clock_;
  --state.pending;
  state.bytes += bytes;
  state.complete();
}

void worker::wait_for(const transaction_barrier& b, unsigned parity, const char* file, int line) {
  const barrier_state& state = state_of(b, file, line);
  if (parity > 1)
    fail({.kind = fault_kind::deadlock,
          .site = {file, line},
          .text = "waits for parity " + std::to_string(parity) + ", and a phase has parity 0 or 1",
          .next = "take the number of the phase modulo 2"});
  if (state.phase % 2 == parity) {
    current->awaited = &b;
    current->parity = parity;
    ++waiting_for_others_;
    wait(lane_state::at_transaction_barrier, file, line);
  }
  for (int other = 0; other < most_warps; ++other)
    recent_accesses_.order(other, state.released[static_cast<std::size_t>(other)], current->warp);
}

void worker::wait_for_cluster(const char* file, int line) {
  ++waiting_for_others_;
  wait(lane_state::at_cluster_barrier, file, line);
}

/// The block has run to its end. Others may still have stored into it, or may yet.
std::optional<fault_info> worker::left_too_early() const {
  if (!under_way_.empty()) {
    const pending_write& p = under_way_.front();
    return fault_info{.kind = fault_kind::use_after_free,
                      .block = p.from_block,
                      .thread = p.from_thread,
                      .site = p.site,
                      .text = std::to_string(p.bytes.size()) +
                              " bytes are on their way into a block that has left the kernel",
                      .next = "let the block that they go to wait for them before it leaves"};
  }
  const cluster_word::access* first = nullptr;
  for (const auto& [word, known] : cluster_words_)
    if (const auto& a = known.stored; a.thread >= 0 && a.arrivals >= passed_)
      if (!first || std::pair(a.block, a.thread) < std::pair(first->block, first->thread)) first = &a;
  if (!first) return std::nullopt;
  return fault_info{.kind = fault_kind::use_after_free,
                    .block = first->block,
                    .thread = first->thread,
                    .pc = first->pc,
                    .size = sizeof(pair_of_floats),
                    .write = true,
                    .where = space::shared,
                    .text = "block " + std::to_string(rank) +
                            " of the cluster may have left the kernel, as it does not wait for that",
                    .next = "let every block wait until what the others store has come"};
}

/// The bytes on their way to this place; nullptr if there are none.
const pending_write* worker::under_way(std::uintptr_t address, unsigned size) const {
  const auto found = std::find_if(under_way_.begin(), under_way_.end(), [&](const pending_write& p) {
    return address < p.to + p.bytes.size() && p.to < address + size;
  });
  return found == under_way_.end() ? nullptr : &*found;
}

/// A store to shared memory must not meet bytes that are on their way there.
void worker::require_quiet(const void* pc, std::uintptr_t address, unsigned size) {
  const pending_write* p = under_way(address, size);
  if (!p) return;
  fault_info f{.kind = fault_kind::race,
               .block = block_,
               .thread = current->linear,
               .pc = pc,
               .address = address,
               .size = size,
               .write = true,
               .where = space::shared,
               .other_block = p->from_block,
               .other_thread = p->from_thread,
               .other_pc = p->pc,
               .other_write = true};
  f.text = "what is on its way there has not arrived, and may come before or after";
  f.next = "wait at the barrier that counts its bytes before you write there";
  fail(std::move(f));
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

/// Moves nothing, but may only be asked for what is there.
void worker::prefetch(const void* from, std::int64_t bytes, const char* file, int line) {
  totals.prefetched_bytes += static_cast<std::uint64_t>(bytes);
  if (!job->check) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(from);
  const buffer_region* r = find_region(begin);
  if (r && r->alive && begin >= r->begin && bytes > 0 &&
      begin - r->begin + static_cast<std::uint64_t>(bytes) <= r->bytes)
    return;
  fail({.kind = fault_kind::out_of_bounds,
        .site = {file, line},
        .text = "asks the cache for " + std::to_string(bytes) + " bytes, not all of one device buffer",
        .next = "ask for rows that there are"});
}

void worker::copy_chunk(const void* pc, void* to, const void* from, int bytes, const transaction_barrier& b,
                        const char* file, int line) {
  require_published(state_of(b, file, line), block_, file, line);
  const auto target = reinterpret_cast<std::uintptr_t>(to), source = reinterpret_cast<std::uintptr_t>(from);
  fault_info f{.kind = fault_kind::misaligned, .site = {file, line}};
  if (target % 16 != 0 || source % 16 != 0 || bytes % 16 != 0 || bytes <= 0) {
    f.text = "copies " + std::to_string(bytes) + " bytes from an address " + std::to_string(source % 16) +
             " past a multiple of 16 to one " + std::to_string(target % 16) + " past";
    f.next = "copy a positive multiple of 16 bytes between multiples of 16";
    fail(std::move(f));
  }
  const auto size = static_cast<unsigned>(bytes);
  unsigned char* written = written_flags(target, size);
  const bool on_a_barrier = std::any_of(barriers_.begin(), barriers_.end(), [&](const auto& known) {
    return reinterpret_cast<std::uintptr_t>(known.first) - target < size;
  });
  if (!written || on_a_barrier) {
    f.kind = fault_kind::out_of_bounds;
    f.text = std::string("copies ") + std::to_string(bytes) + " bytes " +
             (written ? "onto a barrier" : "to outside the shared memory of the block");
    f.next = "keep the chunk inside the array that it is copied to";
    fail(std::move(f));
  }
  if (job->check) {
    if (written_flags(source, 1) || !check_global(pc, source, size, false)) {
      f.kind = fault_kind::host_memory;
      f.text = "copies a chunk that is in no device buffer";
      f.next = "copy from global memory: a buffer that simt::allocate returned";
      fail(std::move(f));
    }
    require_quiet(pc, target, size);
    for (std::uintptr_t at = target; at < target + size; at += 16)
      add_access({pc, target, size, true, space::shared}, at, 16);
    count_chunk(pc, source, size);
  }
  const auto* begin = static_cast<const unsigned char*>(from);
  under_way_.push_back({.bytes = {begin, begin + size},
                        .to = target,
                        .barrier = &b,
                        .from_block = block_,
                        .from_thread = current->linear,
                        .epoch = warps_[current->warp].epoch,
                        .pc = pc,
                        .site = {file, line}});
  warps_[current->warp].epoch = ++clock_;  // what the warp does now is no part of it
  std::memset(to, 0xff, size);
  std::memset(written, 0, size);
}

/// A chunk is one request for all its sectors.
void worker::count_chunk(const void* pc, std::uintptr_t source, unsigned size) {
  block_extents_.push_back({.begin = source,
                            .end = source + size,
                            .block = block_,
                            .pc = pc,
                            .thread = current->linear,
                            .size = size,
                            .cluster = block_ / static_cast<std::uint64_t>(job->cluster_blocks),
                            .phase = passed_});
  line_traffic moved;
  moved.requests = moved.lanes = 1;
  moved.bytes = moved.distinct_bytes = size;
  moved.sectors = moved.ideal_sectors = (source + size - 1) / sector_bytes - source / sector_bytes + 1;
  totals.global_load += moved;
  if (job->by_line) static_cast<line_traffic&>(statements[{pc, false, space::global}]) += moved;
}

/// Block `to` of the cluster, which must have begun and not have left.
worker& worker::block_at(int to, const void* pc, const void* p) {
  fault_info f{.kind = fault_kind::out_of_bounds,
               .pc = pc,
               .address = reinterpret_cast<std::uintptr_t>(p),
               .size = 8,
               .write = true,
               .where = space::shared};
  const auto blocks = static_cast<int>(group->members.size());
  if (to < 0 || to >= blocks) {
    f.text = "of block " + std::to_string(to) + " of a cluster of " + std::to_string(blocks) + " blocks";
    f.next = "name a block from 0 to cluster_blocks() - 1";
    fail(std::move(f));
  }
  worker& other = *group->members[static_cast<std::size_t>(to)];
  f.kind = fault_kind::use_after_free;
  f.text = "block " + std::to_string(to) + " of the cluster ";
  if (passed_ == 0 && to != rank) {
    f.text += "may not have begun";
    f.next = "let the whole cluster pass cluster_arrive() and cluster_wait() first";
    fail(std::move(f));
  }
  if (group->has_left(to)) {
    f.text += "has left the kernel, and its memory is gone";
    f.next = "let every block wait until what the others send has come";
    fail(std::move(f));
  }
  return other;
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
  return address - tls_begin_ < tls_bytes_ ? address - tls_begin_ + other.tls_begin_
                                           : address - reinterpret_cast<std::uintptr_t>(dynamic_shared) +
                                                 reinterpret_cast<std::uintptr_t>(other.dynamic_shared);
}

/// Has this block passed a barrier of the cluster at which that of an earlier access arrived after it, and
/// not relaxed?
bool worker::comes_before(const cluster_word::access& earlier) const {
  const auto blocks = static_cast<std::uint64_t>(job->cluster_blocks);
  const std::vector<bool>& relaxed = group->members[earlier.block % blocks]->relaxed_arrivals_;
  std::size_t arrival = earlier.arrivals;
  while (arrival < relaxed.size() && relaxed[arrival]) ++arrival;
  return passed_ > arrival;
}

/// Holds an access to shared memory in a cluster, by the current thread, against those of other blocks.
void worker::note_in_cluster(worker& target, std::uintptr_t there, const accessed& a) {
  const cluster_word::access mine{current->cluster_arrivals, block_, current->linear, a.pc, a.write};
  for (std::uintptr_t word = there / 4; word <= (there + a.size - 1) / 4; ++word) {
    cluster_word& known = target.cluster_words_[word];
    for (const cluster_word::access* earlier : {&known.own, &known.stored})
      if (earlier->thread >= 0 && earlier->block != block_ && !comes_before(*earlier))
        fail_by_race(a, earlier->block, earlier->thread, earlier->pc, earlier->write);
    cluster_word::access& last = &target == this ? known.own : known.stored;
    if (last.thread < 0 || mine.arrivals >= last.arrivals) last = mine;
  }
}

void worker::store_pair(const void* pc, void* p, int to, float a, float b) {
  worker& other = block_at(to, pc, p);
  const pair_of_floats value{a, b};
  const std::uintptr_t there = place_in(other, pc, p, sizeof value);
  const auto here = reinterpret_cast<std::uintptr_t>(p);
  if (job->check && &other == this) {
    note(pc, here, sizeof value, true, space::shared);
  } else if (job->check) {
    other.require_quiet(pc, there, sizeof value);
    note_in_cluster(other, there, {pc, here, sizeof value, true, space::shared});
    warps_[current->warp].log.record(pc, current->index, here, sizeof value, true, space::shared);
  }
  std::memcpy(reinterpret_cast<void*>(there), &value, sizeof value);
  std::memset(other.written_flags(there, sizeof value), 1, sizeof value);
}

void worker::send_pair(const void* pc, void* p, const transaction_barrier& barrier, int to, float a, float b,
                       const char* file, int line) {
  worker& other = block_at(to, pc, p);
  const pair_of_floats value{a, b};
  const std::uintptr_t there = place_in(other, pc, p, sizeof value);
  const auto* counted =
      reinterpret_cast<const transaction_barrier*>(place_in(other, pc, &barrier, sizeof barrier));
  const auto found = other.barriers_.find(counted);
  if (found == other.barriers_.end())
    fail({.kind = fault_kind::uninitialised,
          .site = {file, line},
          .text = "block " + std::to_string(to) + " of the cluster has not set up the barrier",
          .next = "let every block call barrier_init() before the barrier of the cluster that begins the "
                  "exchange"});
  require_published(found->second, other.block_, file, line);
  pending_write sent{.bytes = std::vector<unsigned char>(sizeof value),
                     .to = there,
                     .barrier = counted,
                     .from_block = block_,
                     .from_thread = current->linear,
                     .pc = pc,
                     .site = {file, line}};
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

void cluster_arrive(const char* file, int line) {
  const inside_simulator inside;
  inside.w.arrive_at_cluster(false, file, line);
}
void cluster_arrive_relaxed(const char* file, int line) {
  const inside_simulator inside;
  inside.w.arrive_at_cluster(true, file, line);
}
void cluster_wait(const char* file, int line) {
  const inside_simulator inside;
  inside.w.wait_for_cluster(file, line);
}
void store_pair(void* p, int rank, float a, float b) {
  const inside_simulator inside;
  inside.w.store_pair(__builtin_return_address(0), p, rank, a, b);
}

void barrier_init(transaction_barrier& b, int arrivals, const char* file, int line) {
  const inside_simulator inside;
  inside.w.init(b, arrivals, file, line);
}
void barrier_publish() {
  const inside_simulator inside;
  inside.w.publish();
}
void barrier_arrive_expect(transaction_barrier& b, int bytes, const char* file, int line) {
  const inside_simulator inside;
  inside.w.arrive_at(b, bytes, file, line);
}
void barrier_arrive(transaction_barrier& b, const char* file, int line) {
  const inside_simulator inside;
  inside.w.arrive_at(b, 0, file, line);
}
void barrier_wait(transaction_barrier& b, unsigned parity, const char* file, int line) {
  const inside_simulator inside;
  inside.w.wait_for(b, parity, file, line);
}
void prefetch(const void* p, std::int64_t bytes, const char* file, int line) {
  const inside_simulator inside;
  inside.w.prefetch(p, bytes, file, line);
}
void copy_chunk(void* to, const void* from, int bytes, transaction_barrier& b, const char* file, int line) {
  const inside_simulator inside;
  inside.w.copy_chunk(__builtin_return_address(0), to, from, bytes, b, file, line);
}
void send_pair(void* p, transaction_barrier& barrier, int rank, float a, float b, const char* file,
               int line) {
  const inside_simulator inside;
  inside.w.send_pair(__builtin_return_address(0), p, barrier, rank, a, b, file, line);
}

}  // namespace sim
}  // namespace simt
