#pragma once
/// @file
/// What the files of the simulator share. Nobody else includes this.
#include <unistd.h>

#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "simt/async.hpp"
#include "simt/sim.hpp"
#include "simt/sim/asan.hpp"
#include "simt/sim/race.hpp"

namespace simt {
inline namespace sim {
namespace detail {

inline constexpr int max_threads_per_block = 1024;
inline constexpr int max_warp_size = 64;

/// The unit in which this system maps memory.
inline std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// One allocation of simulated device memory. The address range [map_begin, map_end) around the data is
/// reserved, so that an address a little outside, or one of freed memory, still says which buffer was meant.
struct buffer_region {
  std::uintptr_t map_begin = 0, map_end = 0;
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  std::size_t mapped_bytes = 0;  // bytes rounded up to pages
  unsigned char* written = nullptr;  // one byte a data byte: has it ever been written?
  bool alive = true;
  std::string name;
  std::string description;
};

/// The buffer whose reserved range holds the address; nullptr if none. Stable while a launch runs.
const buffer_region* find_region(std::uintptr_t address);
std::string region_text(const buffer_region& r);

/// A statement in the source, for the reports.
struct source_line {
  std::string function;
  std::string file;
  int line = 0;
};
/// The innermost source line at a return address that is neither in a system header nor in the layer itself.
source_line resolve(const void* return_address);
/// "row_max<32, float>" for the address of softmax::row_max<32, float>.
std::string kernel_instance(const void* function);
/// "row_max"
std::string kernel_name(const void* function);

enum class space : unsigned char { global, shared };

/// All accesses that one statement of the kernel made in one warp since the warp last met.
struct site_log {
  const void* pc = nullptr;
  unsigned size = 0;
  bool write = false;
  space where = space::global;
  std::array<std::vector<std::uintptr_t>, max_warp_size> address;  // [lane], in order
};

/// Which bytes of global memory the block has loaded, and where. For settings::by_line.
class loaded_bytes {
 public:
  /// @returns how many of the bytes were loaded before; `where` becomes the statement that did
  std::uint64_t add(std::uintptr_t begin, std::uintptr_t end, const void* pc, const void*& where);
  void clear() { spans_.clear(); }

 private:
  struct span {
    std::uintptr_t end;
    const void* pc;
  };
  std::map<std::uintptr_t, span> spans_;  // by begin; they do not overlap
};

/// One statement's accesses of one kind: what lines are made of.
struct statement {
  const void* pc;
  bool write;
  space where;
  auto operator<=>(const statement&) const = default;
};
struct statement_traffic : line_traffic {
  const void* again = nullptr;  // the statement that had loaded the bytes before
};
using statement_table = std::map<statement, statement_traffic>;

/// Where the counts of a warp go.
struct count_target {
  launch_record* totals;
  std::vector<extent>* extents;  // global memory that the block touched
  statement_table* statements;  // nullptr: not asked for
  loaded_bytes* loaded;
  std::uint64_t block;
  int first_thread;  // of the warp
  int lanes;  // of the warp
  std::uint64_t cluster;  // of the block
  unsigned phase;  // barriers of the cluster that it has passed
};

/// The accesses of one warp. The k-th access of each lane at one statement is one request, as on a GPU.
class warp_log {
 public:
  void record(const void* pc, int lane, std::uintptr_t address, unsigned size, bool write, space where) {
    site_log& site = find(pc, size, write, where);
    site.address[lane].push_back(address);
  }
  /// Adds up what was logged since the last call, then forgets it. Called when the lanes of the warp meet.
  void flush(const count_target& target);
  /// Forgets what was logged, uncounted.
  void discard();

 private:
  site_log& find(const void* pc, unsigned size, bool write, space where) {
    // One call may serve shared and global memory, or load and store: its address alone does not tell.
    const auto matches = [&](const site_log& s) {
      return s.pc == pc && s.size == size && s.write == write && s.where == where;
    };
    if (last_ < used_ && matches(sites_[last_])) return sites_[last_];
    for (last_ = 0; last_ < used_; ++last_)
      if (matches(sites_[last_])) return sites_[last_];
    if (used_ == sites_.size()) sites_.emplace_back();
    site_log& site = sites_[used_++];
    site.pc = pc;
    site.size = size;
    site.write = write;
    site.where = where;
    return site;
  }
  std::vector<site_log> sites_;
  std::size_t used_ = 0;
  std::size_t last_ = 0;
};

enum class lane_state : unsigned char {
  ready,
  at_barrier,
  at_shuffle,
  at_warp_barrier,
  at_cluster_barrier,
  at_transaction_barrier,
  exited,
  faulted
};

struct sync_site {
  const char* file = "";
  int line = 0;
  bool operator==(const sync_site& o) const {
    return line == o.line && (file == o.file || std::string_view(file) == o.file);
  }
};

/// What a thread did wrong, before it is put into words.
struct fault_info {
  fault_kind kind{};
  std::uint64_t block = 0;
  int thread = 0;
  const void* pc = nullptr;  // return address of the access; nullptr: see site
  sync_site site;  // of a call that is no access, such as a barrier or a shuffle
  std::uintptr_t address = 0;
  unsigned size = 0;
  bool write = false;
  space where = space::global;
  std::string text;  // the part of the report that only the finder can tell
  std::string next;  // what to change
  // Races within a launch: the other access.
  std::uint64_t other_block = 0;
  int other_thread = 0;
  const void* other_pc = nullptr;  // nullptr: of a launch before, and not known
  bool other_write = false;
};
/// An access, as far as a report of it needs.
struct accessed {
  const void* pc = nullptr;  // return address
  std::uintptr_t address = 0;
  unsigned size = 0;
  bool write = false;
  space where = space::global;
};
/// The race between an access that was noted earlier and the one in `f`, which gets the words for it.
void describe_race(fault_info& f, int warp_size);

/// One GPU thread: a fiber that waits for a block, runs the kernel, and waits again.
struct lane {
  std::optional<boost::context::fiber> fiber;  // engaged while suspended
  std::optional<boost::context::fiber> scheduler;  // engaged while running
  lane_state state = lane_state::exited;
  bool started = false;
  int linear = 0;  // within the block
  int warp = 0;
  int index = 0;  // within the warp
  unsigned x = 0, y = 0, z = 0;
  sync_site site;
  const transaction_barrier* awaited = nullptr;  // at_transaction_barrier: what it waits for
  unsigned parity = 0;  // likewise: of the phase
  unsigned cluster_arrivals = 0;  // at the barrier of the cluster
  bool has_to_wait = false;  // for the launch before, ahead of which it may run
  stack_switch stack;
};

struct warp {
  int first = 0, count = 0;  // lanes
  unsigned phase = 0;  // completed exchanges; picks the slot, so that fast lanes cannot overwrite slow ones
  std::array<std::array<std::uint64_t, max_warp_size>, 2> slot{};
  std::uint64_t epoch = 0;  // of the last meeting, or arrival at a transaction_barrier
  std::uint64_t meetings = 0;
  warp_log log;
  // For a trace: the shuffle that its lanes wait at, and whether they work on a row that is looked for.
  exchange_kind exchanging{};
  value_kind type{};
  int operand = 0;
  bool in_row = false, touched_row = false, touched_other_row = false;
  std::vector<trace_step> steps;
};

/// What the last launch wrote, joined: it may still run when the next one begins early. Empty once the host,
/// or the stream, has waited for it.
extern std::vector<byte_range> under_way;

/// A launch as all workers see it.
struct launch_job {
  const void* kernel = nullptr;
  void (*invoke)(const void*, const void*) = nullptr;
  const void* arguments = nullptr;
  std::size_t argument_bytes = 0;
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  int warp_size = 32;
  bool check = true;
  std::string name;  // of the kernel
  bool by_line = false;
  std::vector<traced_row> trace;
  int cluster_blocks = 1;
  bool begins_early = false;
  std::vector<byte_range> under_way;  // written by the launch that may not have ended when this one begins
  sync_site launched;

  int threads() const { return static_cast<int>(block.x * block.y * block.z); }  // of a block
};

class worker;

/// The blocks of a cluster, each on a worker of its own. One runs at a time, until all its threads wait; then
/// the next one does. So a run is the same each time, and no block disturbs another.
class cluster_group {
 public:
  explicit cluster_group(int blocks)
      : members(static_cast<std::size_t>(blocks)), changed_(members.size()), left_(members.size()) {}

  std::vector<worker*> members;  // by rank

  /// Called by every member: waits for the others, lets the last one `pick` a cluster, and waits for the turn
  /// of block `rank` in it. @returns what was picked; nothing when there is no more to run
  std::optional<std::uint64_t> next(int rank, const std::function<std::optional<std::uint64_t>()>& pick);

  enum class turn { mine, abandoned, stuck };
  /// Waits until it is the turn of block `rank`.
  turn take(int rank);
  /// Lets the other blocks go on, and waits for the next turn. `went_on`: some thread of this block did since
  /// the last. @returns stuck, and keeps the turn, if no block of the cluster can go on
  turn pass(int rank, bool went_on);
  /// The block has run to its end.
  void leave(int rank);
  /// The block has a fault: the others stop where they are.
  void abandon();

  bool has_left(int rank) const { return left_[static_cast<std::size_t>(rank)] != 0; }
  /// All threads of a block have arrived at the barrier of the cluster.
  void arrive() {
    if (++arrived_ < static_cast<int>(members.size())) return;
    arrived_ = 0;
    ++phase_;
  }
  unsigned phase() const { return phase_; }  // completed barriers

 private:
  turn wait_for_turn(int rank, std::unique_lock<std::mutex>& lock);
  void hand_on(int rank);
  std::condition_variable& changed(int rank) { return changed_[static_cast<std::size_t>(rank)]; }
  void wake_all();

  std::mutex guard_;
  std::vector<std::condition_variable> changed_;  // one a member: a turn wakes nobody else
  int turn_ = 0, idle_ = 0, waiting_ = 0;
  std::vector<char> left_;
  bool abandoned_ = false;
  std::uint64_t round_ = 0;
  std::optional<std::uint64_t> picked_;
  // Only touched by the block whose turn it is.
  int arrived_ = 0;
  unsigned phase_ = 0;
};

/// A transaction_barrier as the simulator knows it.
struct barrier_state {
  int setter = 0;  // the thread that set it up
  std::uint64_t warp_meetings = 0, block_meetings = 0;  // until then
  bool published = false;
  int arrivals = 0;  // a phase
  int pending = 0;  // arrivals, in this phase
  std::int64_t bytes = 0;  // expected and not yet there; less than 0 while they come before they are expected
  unsigned phase = 0;  // completed phases
  // By warp, up to which epoch what it did comes before the end of this phase, and of those that have ended.
  std::array<std::uint64_t, most_warps> arriving{}, released{};

  void complete() {
    if (pending > 0 || bytes != 0) return;
    pending = arrivals;
    ++phase;
    for (std::size_t w = 0; w < released.size(); ++w) released[w] = std::max(released[w], arriving[w]);
    arriving.fill(0);
  }
};

/// The last accesses to a word of shared memory of a block in a cluster: its own, and a store of another
/// block. Each with how often its thread had arrived at the cluster's barrier: who has passed that barrier
/// more often comes later, and everybody else at any time.
struct cluster_word {
  struct access {
    unsigned arrivals = 0;
    std::uint64_t block = 0;
    int thread = -1;  // -1: none
    const void* pc = nullptr;
    bool write = false;
  };
  access own, stored;
};

/// Bytes on their way into a block's shared memory. They arrive as late as possible.
struct pending_write {
  std::vector<unsigned char> bytes;
  std::uintptr_t to = 0;
  const transaction_barrier* barrier = nullptr;
  std::uint64_t from_block = 0;
  int from_thread = 0;
  std::uint64_t epoch = 0;  // of its warp
  const void* pc = nullptr;
  sync_site site;
};

/// Runs blocks, one at a time, on one host thread.
class worker {
 public:
  worker();
  ~worker();
  worker(const worker&) = delete;

  /// Binds the worker to the calling thread and a launch.
  void begin(const launch_job& job);
  /// Forgets the block before. All blocks of a cluster do, before the first of the next one runs.
  void prepare_block();
  /// Runs one block. @returns its first fault, if any; completed() says whether it ran to its end
  std::optional<fault_info> run_block(std::uint64_t block);
  bool completed() const { return completed_; }
  launch_record totals;
  statement_table statements;
  std::vector<extent> extents;  // of all blocks that ran to their end
  /// "thread 3 of block 7", for the last words of a crash.
  int running_thread() const { return current ? current->linear : -1; }
  std::uint64_t running_block() const { return block_; }

  // Called on a lane's fiber.
  void wait(lane_state state, const char* file, int line);
  std::uint64_t exchange(exchange_kind kind, value_kind type, int width, std::uint64_t bits, int operand,
                         const char* file, int line);
  void access(const void* pc, std::uintptr_t address, unsigned size, bool write);
  unsigned fetch_increment(const void* pc, unsigned* p, const char* file, int line);
  void arrive_at_cluster(bool relaxed, const char* file, int line);
  void wait_for_cluster(const char* file, int line);
  void init(const transaction_barrier& b, int arrivals, const char* file, int line);
  void publish();
  void arrive_at(const transaction_barrier& b, std::int64_t bytes, const char* file, int line);
  void wait_for(const transaction_barrier& b, unsigned parity, const char* file, int line);
  void copy_chunk(const void* pc, void* to, const void* from, int bytes, const transaction_barrier& b,
                  const char* file, int line);
  void prefetch(const void* from, std::int64_t bytes, const char* file, int line);
  void begin_next_launch(const char* file, int line);
  void wait_for_last_launch() {
    current->has_to_wait = false;
    waited_ = true;
  }
  std::vector<std::uintptr_t> counters;  // words that fetch_increment() changed
  void store_pair(const void* pc, void* p, int rank, float a, float b);
  void send_pair(const void* pc, void* p, const transaction_barrier& barrier, int rank, float a, float b,
                 const char* file, int line);

  lane* current = nullptr;
  dim3 block_index;
  const launch_job* job = nullptr;
  unsigned char* dynamic_shared = nullptr;
  cluster_group* group = nullptr;  // of the block; not owned
  int rank = 0;  // of the block, within its cluster

 private:
  void resume(lane& l);
  void create_fiber(lane& l);
  void drop_fibers();
  void unmap_stacks();
  unsigned char* stack_of(const lane& l) const;  // its lowest address
  void release(warp& w);
  void flush(warp& w);
  void trace(warp& w);
  void order_block();
  void finish_block();
  void note(const void* pc, std::uintptr_t address, unsigned size, bool write, space where);
  std::optional<fault_info> run_until_all_wait();
  std::optional<fault_info> meet_at_barrier(bool& done);
  std::optional<fault_info> run_threads();
  std::optional<fault_info> wake(bool& woke);
  fault_info stuck_fault() const;
  const lane* first_at(lane_state state) const;
  std::optional<fault_info> left_too_early() const;
  void deliver();
  void abandon_block();
  barrier_state& state_of(const transaction_barrier& b, const char* file, int line);
  void require_published(const barrier_state& b, std::uint64_t block, const char* file, int line);
  unsigned char* written_flags(std::uintptr_t address, std::size_t size);
  worker& block_at(int rank, const void* pc, const void* p);
  std::uintptr_t place_in(const worker& other, const void* pc, const void* p, unsigned size);
  void note_in_cluster(worker& target, std::uintptr_t there, const accessed& a);
  const pending_write* under_way(std::uintptr_t address, unsigned size) const;
  void require_quiet(const void* pc, std::uintptr_t address, unsigned size);
  void count_chunk(const void* pc, std::uintptr_t source, unsigned size);
  bool comes_before(const cluster_word::access& earlier) const;
  void add_access(const accessed& a, std::uintptr_t address, unsigned size);
  [[noreturn]] void fail_by_race(const accessed& a, std::uint64_t other_block, int other_thread,
                                 const void* other_pc, bool other_write);
  [[noreturn]] void fail(fault_info fault);
  void require_waited(const char* text, const char* file, int line);
  bool check_global(const void* pc, std::uintptr_t address, unsigned size, bool write);
  bool check_shared(const void* pc, std::uintptr_t address, unsigned size, bool write);
  bool on_own_stack(std::uintptr_t address) const;
  void check_elsewhere(const void* pc, std::uintptr_t address, unsigned size, bool write);

  std::vector<lane> lanes_;
  std::vector<warp> warps_;
  unsigned char* stacks_ = nullptr;
  int stack_count_ = 0;
  std::vector<unsigned> stack_ids_;  // for Valgrind
  stack_switch scheduler_stack_;
  const void* scheduler_bottom_ = nullptr;
  std::size_t scheduler_bytes_ = 0;
  std::uintptr_t tls_begin_ = 0;
  std::size_t tls_bytes_ = 0;
  std::vector<unsigned char> static_written_;  // one byte a byte of static shared memory
  std::vector<unsigned char> dynamic_written_;  // likewise, dynamic
  std::vector<unsigned char> dynamic_;
  const buffer_region* recent_[4] = {};
  unsigned next_recent_ = 0;
  std::optional<fault_info> fault_;
  // A read of what nobody has written. Perhaps somebody writes it before the next barrier: then it is a race.
  std::optional<fault_info> unwritten_;
  bool completed_ = true;
  bool waited_ = false;  // for the launch before: some thread of the block
  std::uint64_t block_ = 0;
  std::uint64_t clock_ = 0;  // meetings of warps and blocks so far
  block_accesses recent_accesses_;
  int waiting_for_others_ = 0;  // threads at a transaction_barrier or at the barrier of the cluster
  int arrived_threads_ = 0;  // at the barrier of the cluster, in this phase
  unsigned passed_ = 0;  // barriers of the cluster
  std::vector<bool> relaxed_arrivals_;  // at them, in turn: they order nothing
  std::uint64_t meetings_ = 0;  // of the whole block
  std::unordered_map<std::uintptr_t, cluster_word> cluster_words_;  // by address / 4
  bool abandoned_ = false;  // because of a fault of another block of the cluster
  std::map<const transaction_barrier*, barrier_state> barriers_;
  std::vector<pending_write> under_way_;
  std::vector<extent> block_extents_;
  loaded_bytes loaded_;
  std::uint64_t loaded_before_ = 0;  // global bytes, until the last barrier
};

/// The worker whose kernel code runs on this host thread right now; nullptr everywhere else, the simulator's
/// own code included. That code shares inline functions of the standard library with kernel files, where they
/// are watched.
extern thread_local worker* running;

/// Entered from kernel code: nothing is watched until the object dies.
class inside_simulator {
 public:
  inside_simulator() : w(*running) { running = nullptr; }
  ~inside_simulator() { running = &w; }
  worker& w;
};

/// The source lines of what was counted, sorted by file and line.
std::vector<line_record> by_line(const statement_table& statements);

/// Puts a fault into words. @returns the exception to throw
fault explain(const fault_info& f, const launch_job& job);

}  // namespace detail
}  // namespace sim
}  // namespace simt
