// Fibers, barriers and shuffles: a block runs on one host thread, one fiber a GPU thread; blocks spread over
// the cores.
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "simt/sim/internal.hpp"

namespace simt {
inline namespace sim {

settings& configuration() {
  static settings s;
  return s;
}

namespace {
std::vector<launch_record>& record_list() {
  static std::vector<launch_record> all;
  return all;
}
}  // namespace

const std::vector<launch_record>& records() { return record_list(); }
void clear_records() { record_list().clear(); }

std::string describe(status s) {
  switch (s) {
    case status::success:
      return "success";
    case status::out_of_memory:
      return "the host has not enough free memory";
    case status::invalid_value:
      return "the address is not inside a live device buffer";
    case status::invalid_configuration:
      return "no GPU takes this grid or block";
  }
  return "unknown";
}

std::string advice(status s) {
  if (s == status::out_of_memory) return "Use fewer --rows or --cols: a simulated byte takes two.";
  if (s == status::invalid_value) return "Pass a pointer that simt::allocate returned and a size within it.";
  return "Launch 1 to 1024 threads a block, at least one block, and no more shared memory than the device "
         "has.";
}

device find_device(int index) {
  const std::string problem = device_problem(query_devices(), index, "simulated");
  if (!problem.empty()) throw no_device(problem);
  device d;
  d.name = "SIMT simulator";
  d.architecture = "host";
  d.multiprocessors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  d.warp_size = configuration().warp_size;
  d.threads_per_multiprocessor = detail::max_threads_per_block;
  d.shared_bytes_per_block = configuration().shared_bytes;
  d.cluster_blocks = configuration().cluster_blocks;
  d.memory_bytes = free_memory();
  return d;
}

namespace detail {

thread_local worker* running = nullptr;

namespace {

constexpr std::size_t stack_bytes = 64 * 1024;  // whole pages of every size that Linux uses

/// Stacks belong to the worker, so a fiber gives nothing back.
struct borrowed_stack {
  boost::context::stack_context allocate() { return {}; }
  void deallocate(boost::context::stack_context&) noexcept {}
};

/// Bytes of a stack and of the page below it, which may not be touched.
std::size_t guarded_stack_bytes() { return stack_bytes + page_bytes(); }

/// The lowest address of one of the stacks that map_stacks() returned.
unsigned char* stack_number(unsigned char* stacks, int index) {
  return stacks + index * guarded_stack_bytes() + page_bytes();
}

/// `count` stacks, each above a page that may not be touched.
unsigned char* map_stacks(int count) {
  const std::size_t bytes = count * guarded_stack_bytes();
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  auto* base = static_cast<unsigned char*>(p);
  for (int i = 0; i < count; ++i)
    if (mprotect(stack_number(base, i) - page_bytes(), page_bytes(), PROT_NONE) != 0) {
      munmap(p, bytes);
      throw error(
          "The system has no more memory mappings for the stacks of the simulated threads: use --threads 1.");
    }
  return base;
}

/// Where the calling thread keeps the thread-local variables of this program: `__shared__` is among them.
void find_static_shared(std::uintptr_t& begin, std::size_t& bytes) {
  struct range {
    std::uintptr_t begin;
    std::size_t bytes;
  } found{};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        for (int i = 0; i < info->dlpi_phnum; ++i)
          if (info->dlpi_phdr[i].p_type == PT_TLS)
            *static_cast<range*>(out) = {reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data),
                                         info->dlpi_phdr[i].p_memsz};
        return 1;  // the program itself comes first
      },
      &found);
  begin = found.begin;
  bytes = found.bytes;
}

/// Is the address in the program's own constants?
bool is_constant(std::uintptr_t address) {
  struct query {
    std::uintptr_t address;
    bool found;
  } q{address, false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* p) {
        auto& wanted = *static_cast<query*>(p);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          // Constants lie in segments that cannot be written, or that are sealed once their addresses are
          // filled in.
          const bool constant =
              (segment.p_type == PT_LOAD && !(segment.p_flags & PF_W)) || segment.p_type == PT_GNU_RELRO;
          if (constant && wanted.address - (info->dlpi_addr + segment.p_vaddr) < segment.p_memsz)
            wanted.found = true;
        }
        return wanted.found ? 1 : 0;
      },
      &q);
  return q.found;
}

const char* const misaligned_advice =
    "make the address a multiple of the access size, or peel the first elements of the row";
std::string misaligned_text(unsigned size) { return " is no multiple of " + std::to_string(size); }

bool at_warp_operation(const lane& l) {
  return l.state == lane_state::at_shuffle || l.state == lane_state::at_warp_barrier;
}

/// What a lane gave to a shuffle, as a number.
double as_number(std::uint64_t bits, value_kind type) {
  if (type == value_kind::f64) return std::bit_cast<double>(bits);
  if (type == value_kind::f32)
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return static_cast<double>(bits);
}

constexpr const char* wait_advice =
    "call simt::wait_for_last_launch() before it, in every thread or ahead of a __syncthreads()";

bool all_set(const unsigned char* flags, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (!flags[i]) return false;
  return true;
}

// The worker that runs blocks on this thread, kernel code or not.
thread_local worker* busy = nullptr;

#if !defined(__SANITIZE_ADDRESS__)

/// Last words when the host's processor stops a kernel, where a GPU would report or return rubbish.
void report_crash(int number, siginfo_t* info, void*) {
  if (!busy || busy->running_thread() < 0) {
    std::signal(number, SIG_DFL);
    std::raise(number);
    return;
  }
  const char* const what = number == SIGFPE
                               ? "an integer division has no result"
                               : "its stack overflowed, or it reached memory that does not exist";
  char text[512];
  const int wanted = std::snprintf(
      text, sizeof text,
      "crash in kernel %s: thread %d of block %llu was stopped by the processor: %s\n"
      "  near address %p; keep local arrays below %zu kB%s\n",
      busy->job->name.c_str(), busy->running_thread(), static_cast<unsigned long long>(busy->running_block()),
      what, info->si_addr, stack_bytes / 1024,
      busy->job->check ? "" : ", and run without --no-check to see bad accesses");
  const std::size_t length = std::min(static_cast<std::size_t>(std::max(wanted, 0)), sizeof text - 1);
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, length);
  _exit(1);
}

/// While it lives, crashes are ours to report; then whoever listened before listens again.
class crash_watch {
 public:
  crash_watch() {
    struct sigaction ours {};
    ours.sa_sigaction = report_crash;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (std::size_t i = 0; i < std::size(numbers_); ++i) sigaction(numbers_[i], &ours, &before_[i]);
  }
  ~crash_watch() {
    for (std::size_t i = 0; i < std::size(numbers_); ++i) sigaction(numbers_[i], &before_[i], nullptr);
  }
  crash_watch(const crash_watch&) = delete;

 private:
  static constexpr int numbers_[] = {SIGSEGV, SIGBUS, SIGFPE};
  struct sigaction before_[std::size(numbers_)] = {};
};

/// A stack for the handler on this thread, while it lives: one that has overflowed cannot report it.
class signal_stack {
 public:
  signal_stack() : memory_(64 * 1024) {
    stack_t ours{};
    ours.ss_sp = memory_.data();
    ours.ss_size = memory_.size();
    sigaltstack(&ours, &before_);
  }
  ~signal_stack() { sigaltstack(&before_, nullptr); }
  signal_stack(const signal_stack&) = delete;

 private:
  std::vector<unsigned char> memory_;
  stack_t before_{};
};

#else  // AddressSanitizer has the last word

class crash_watch {};
class signal_stack {};

#endif

}  // namespace

worker::worker() : lanes_(max_threads_per_block) {}

worker::~worker() {
  // A fiber that is suspended inside a kernel must not be unwound: it would run through frames that cannot
  // throw.
  drop_fibers();
  unmap_stacks();
}

void worker::unmap_stacks() {
  for (unsigned id : stack_ids_) remove_stack(id);
  stack_ids_.clear();
  if (stacks_) munmap(stacks_, stack_count_ * guarded_stack_bytes());
  stacks_ = nullptr;
  stack_count_ = 0;
}

void worker::drop_fibers() {
  for (int t = 0; t < stack_count_; ++t) {
    lane& l = lanes_[t];
    new (&l.fiber) std::optional<boost::context::fiber>();
    new (&l.scheduler) std::optional<boost::context::fiber>();
    l.started = false;
    l.state = lane_state::exited;
    l.stack = {};
    forget_stack(stack_of(l), stack_bytes);
  }
}

void worker::create_fiber(lane& l) {
  // Without the shift all stacks would start at the same place in a page and fight for the same cache sets.
  const std::size_t shift = static_cast<std::size_t>(l.linear) * 192 % 3072;
  unsigned char* top = stack_of(l) + stack_bytes - shift;
  boost::context::stack_context context;
  context.size = stack_bytes - shift;
  context.sp = top;
  new (&l.fiber) std::optional<boost::context::fiber>(
      boost::context::fiber(std::allocator_arg, boost::context::preallocated(top, context.size, context),
                            borrowed_stack(), [this, &l](boost::context::fiber&& scheduler) {
                              l.scheduler = std::move(scheduler);
                              l.stack.arrive(&scheduler_bottom_, &scheduler_bytes_);
                              for (;;) {
                                running = this;
                                job->invoke(job->kernel, job->arguments);
                                running = nullptr;
                                wait(lane_state::exited, "", 0);
                              }
                              return std::move(*l.scheduler);
                            }));
  l.started = true;
}

unsigned char* worker::stack_of(const lane& l) const { return stack_number(stacks_, l.linear); }

void worker::begin(const launch_job& j) {
  job = &j;
  totals = {};
  counters.clear();
  statements.clear();
  extents.clear();
  loaded_before_ = 0;
  recent_accesses_.begin(j.warp_size == 64 ? 6 : 5);
  find_static_shared(tls_begin_, tls_bytes_);
  static_written_.assign(tls_bytes_, 0);
  dynamic_.resize(j.shared_bytes + 128);
  dynamic_written_.assign(j.shared_bytes, 0);
  dynamic_shared = dynamic_.data() + (128 - reinterpret_cast<std::uintptr_t>(dynamic_.data()) % 128) % 128;
  std::fill(std::begin(recent_), std::end(recent_), nullptr);
  const int threads = j.threads();
  if (threads > stack_count_) {
    drop_fibers();
    unmap_stacks();
    stacks_ = map_stacks(threads);
    stack_count_ = threads;
    for (int i = 0; i < threads; ++i) stack_ids_.push_back(add_stack(stack_number(stacks_, i), stack_bytes));
  }
  warps_.resize((threads + j.warp_size - 1) / j.warp_size);
  for (int t = 0; t < max_threads_per_block; ++t) {
    lane& l = lanes_[t];
    l.linear = t;
    l.warp = t / j.warp_size;
    l.index = t % j.warp_size;
    l.x = t % j.block.x;
    l.y = t / j.block.x % j.block.y;
    l.z = t / j.block.x / j.block.y;
  }
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    warps_[w].first = static_cast<int>(w) * j.warp_size;
    warps_[w].count = std::min(j.warp_size, threads - warps_[w].first);
  }
}

void worker::resume(lane& l) {
  if (!l.started) create_fiber(l);
  current = &l;
  scheduler_stack_.leave(stack_of(l), stack_bytes);
  boost::context::fiber next = std::move(*l.fiber).resume();
  scheduler_stack_.arrive();
  current = nullptr;
  *l.fiber = std::move(next);
}

void worker::wait(lane_state state, const char* file, int line) {
  lane& l = *current;
  l.state = state;
  l.site = {file, line};
  l.stack.leave(scheduler_bottom_, scheduler_bytes_);
  *l.scheduler = std::move(*l.scheduler).resume();
  l.stack.arrive(&scheduler_bottom_, &scheduler_bytes_);
}

void worker::fail(fault_info fault) {
  fault.block = block_;
  fault.thread = current->linear;
  fault_ = std::move(fault);
  wait(lane_state::faulted, "", 0);
  std::abort();  // a lane at fault is never resumed
}

std::uint64_t worker::exchange(exchange_kind kind, value_kind type, int width, std::uint64_t bits,
                               int operand, const char* file, int line) {
  lane& l = *current;
  warp& w = warps_[l.warp];
  if (width > job->warp_size)
    fail({.kind = fault_kind::divergent_shuffle,
          .site = {file, line},
          .text = "a shuffle over " + std::to_string(width) + " lanes, but a warp has " +
                  std::to_string(job->warp_size),
          .next = "take the width from the template argument WarpSize, never from a literal"});
  auto& slot = w.slot[w.phase % 2];
  slot[l.index] = bits;
  w.exchanging = kind;
  w.type = type;
  w.operand = operand;
  wait(lane_state::at_shuffle, file, line);
  const int group = l.index & ~(width - 1);  // width is a power of two
  int source = l.index;
  switch (kind) {
    case exchange_kind::from_lane:
      source = group + (operand & (width - 1));
      break;
    case exchange_kind::exclusive_or:
      source = l.index ^ operand;
      break;
    case exchange_kind::down:
      source = l.index + operand;
      break;
  }
  // As CUDA and HIP define it: a later group gives nothing, an earlier one does.
  if (source >= group + width) source = l.index;
  return slot[source];
}

void worker::flush(warp& w) {
  w.log.flush({&totals, &block_extents_, job->by_line ? &statements : nullptr, &loaded_, block_, w.first,
               w.count, block_ / static_cast<std::uint64_t>(job->cluster_blocks), passed_});
}

/// Notes the point where the lanes of the warp have met, if they work on a traced row.
void worker::trace(warp& w) {
  if (w.touched_row || w.touched_other_row) w.in_row = w.touched_row;
  w.touched_row = w.touched_other_row = false;
  const lane& first = lanes_[w.first];
  if (!w.in_row || first.state == lane_state::exited) return;
  trace_step step{.file = project_path(first.site.file), .line = first.site.line};
  if (first.state == lane_state::at_warp_barrier) step.what = trace_step::meeting::warp_barrier;
  if (first.state == lane_state::at_cluster_barrier) step.what = trace_step::meeting::cluster_barrier;
  if (first.state == lane_state::at_shuffle) {
    step.what = trace_step::meeting::shuffle;
    step.exchange = (w.exchanging == exchange_kind::exclusive_or ? "xor "
                     : w.exchanging == exchange_kind::down       ? "down "
                                                                 : "from lane ") +
                    std::to_string(w.operand);
    step.floating = w.type != value_kind::integer;
    for (int i = 0; i < w.count; ++i) step.given.push_back(as_number(w.slot[w.phase % 2][i], w.type));
  }
  w.steps.push_back(std::move(step));
}

/// All threads of the block have met.
void worker::order_block() {
  ++meetings_;
  for (warp& w : warps_) release(w);
  if (waited_)
    for (lane& l : lanes_) l.has_to_wait = false;
  recent_accesses_.forget();
  totals.loaded_at_once = std::max(totals.loaded_at_once, totals.global_load.bytes - loaded_before_);
  loaded_before_ = totals.global_load.bytes;
}

/// The block has run to its end.
void worker::finish_block() {
  condense(block_extents_);
  extents.insert(extents.end(), block_extents_.begin(), block_extents_.end());
  if (job->by_line) {
    const auto used = [](const std::vector<unsigned char>& written) {
      return static_cast<std::size_t>(std::count(written.begin(), written.end(), 1));
    };
    totals.static_shared_bytes = std::max(totals.static_shared_bytes, used(static_written_));
  }
  for (std::size_t i = 0; i < warps_.size(); ++i)
    if (!warps_[i].steps.empty())
      totals.traces.push_back({block_, static_cast<int>(i), std::move(warps_[i].steps)});
}

/// All lanes of the warp have met: they go on together.
void worker::release(warp& w) {
  flush(w);
  if (!job->trace.empty()) trace(w);
  w.epoch = ++clock_;
  ++w.meetings;
  for (int i = 0; i < w.count; ++i)
    if (lane& l = lanes_[w.first + i]; l.state != lane_state::exited) l.state = lane_state::ready;
}

/// Runs every lane until it waits or exits, and lets warps through their shuffles on the way.
std::optional<fault_info> worker::run_until_all_wait() {
  for (warp& w : warps_) {
    for (;;) {
      int waiting = 0;
      for (int i = 0; i < w.count; ++i) {
        lane& l = lanes_[w.first + i];
        if (l.state == lane_state::ready) resume(l);
        if (l.state == lane_state::faulted) return fault_;
        waiting += at_warp_operation(l);
      }
      if (waiting == 0) break;
      // Some may come later, when their bytes have.
      const bool all_here = waiting_for_others_ == 0 ||
                            std::none_of(&lanes_[w.first], &lanes_[w.first] + w.count, [](const lane& l) {
                              return l.state == lane_state::at_transaction_barrier;
                            });
      if (!all_here) break;
      const lane* first = nullptr;
      bool same_place = true;
      for (int i = 0; i < w.count; ++i) {
        const lane& l = lanes_[w.first + i];
        if (!at_warp_operation(l)) continue;
        if (!first) first = &l;
        same_place = same_place && l.state == first->state && l.site == first->site;
      }
      if (waiting == w.count && w.count == job->warp_size && same_place) {
        totals.shuffles += first->state == lane_state::at_shuffle;
        release(w);
        ++w.phase;
        continue;
      }
      fault_info f{.kind = fault_kind::divergent_shuffle,
                   .block = block_,
                   .thread = first->linear,
                   .site = first->site};
      if (w.count < job->warp_size) {
        f.text = "the last warp of the block has " + std::to_string(w.count) + " of " +
                 std::to_string(job->warp_size) + " threads, and a shuffle needs them all";
        f.next = "launch whole warps: round the block up to a multiple of " + std::to_string(job->warp_size);
      } else if (waiting == w.count) {
        f.text = "lanes of warp " + std::to_string(first->warp) + " wait at different shuffles";
        f.next = "let all lanes of the warp take the same branch before they exchange values";
      } else {
        f.text = "reached by " + std::to_string(waiting) + " of " + std::to_string(w.count) +
                 " threads of warp " + std::to_string(first->warp) +
                 "; the others have left or wait elsewhere";
        f.next =
            "let every lane reach the shuffle; a lane without work passes the identity (-inf for max, 0 for "
            "sum)";
      }
      return f;
    }
  }
  return std::nullopt;
}

/// Every thread waits at a barrier or has left. Lets the block through if all stand at the same barrier.
std::optional<fault_info> worker::meet_at_barrier(bool& done) {
  const int threads = job->threads();
  int waiting = 0;
  const lane* first = nullptr;
  const lane* elsewhere = nullptr;
  for (int t = 0; t < threads; ++t) {
    const lane& l = lanes_[t];
    if (l.state != lane_state::at_barrier) continue;
    if (!first) first = &l;
    if (!(l.site == first->site) && !elsewhere) elsewhere = &l;
    ++waiting;
  }
  done = waiting == 0;
  if (done) {
    order_block();
    return std::nullopt;
  }
  if (waiting == threads && !elsewhere) {
    ++totals.barriers;
    order_block();
    return std::nullopt;
  }
  fault_info f{
      .kind = fault_kind::divergent_barrier, .block = block_, .thread = first->linear, .site = first->site};
  if (elsewhere) {
    f.text = "thread " + std::to_string(elsewhere->linear) + " waits at another barrier, line " +
             std::to_string(elsewhere->site.line);
    f.next = "let all threads of the block pass the same barriers in the same order";
  } else {
    int left = 0;
    while (lanes_[left].state != lane_state::exited) ++left;
    f.text = "reached by " + std::to_string(waiting) + " of " + std::to_string(threads) +
             " threads; thread " + std::to_string(left) + " is the first that has left the kernel";
    f.next = "let no thread return early or skip the barrier in a branch; mask its loads and stores instead";
  }
  return f;
}

void worker::prepare_block() {
  std::fill(static_written_.begin(), static_written_.end(), 0);
  std::fill(dynamic_written_.begin(), dynamic_written_.end(), 0);
  std::fill(dynamic_.begin(), dynamic_.end(), 0xff);
  const int threads = job->threads();
  for (int t = 0; t < threads; ++t) {
    lanes_[t].state = lane_state::ready;
    lanes_[t].cluster_arrivals = 0;
    lanes_[t].has_to_wait = job->begins_early;
  }
  waited_ = false;
  fault_.reset();
  unwritten_.reset();
  block_extents_.clear();
  recent_accesses_.forget();
  loaded_.clear();
  for (warp& w : warps_) {
    w.epoch = ++clock_;
    w.in_row = w.touched_row = w.touched_other_row = false;
    w.steps.clear();
  }
  waiting_for_others_ = arrived_threads_ = 0;
  passed_ = 0;
  relaxed_arrivals_.clear();
  cluster_words_.clear();
  barriers_.clear();
  under_way_.clear();
}

std::optional<fault_info> worker::run_block(std::uint64_t block) {
  block_ = block;
  block_index = dim3(static_cast<unsigned>(block % job->grid.x),
                     static_cast<unsigned>(block / job->grid.x % job->grid.y),
                     static_cast<unsigned>(block / job->grid.x / job->grid.y));
  abandoned_ = group->take(rank) == cluster_group::turn::abandoned;
  busy = this;
  std::optional<fault_info> found;
  if (!abandoned_) found = run_threads();
  busy = nullptr;
  completed_ = !found && !abandoned_;
  // What was read before anybody wrote it comes first, unless a race says why nobody had: in shared memory
  // one since the last barrier, in global memory one at the same place.
  const auto explains = [&](const fault_info& race) {
    return race.kind == fault_kind::race &&
           (unwritten_->where == space::shared || (race.address < unwritten_->address + unwritten_->size &&
                                                   unwritten_->address < race.address + race.size));
  };
  if (unwritten_ && !(found && explains(*found))) found = unwritten_;
  if (completed_ && !found && job->check && job->begins_early && !waited_)
    found = {.kind = fault_kind::race,
             .block = block_,
             .site = job->launched,
             .text =
                 "the block ends and has not waited for the launch before, nor will the next launch: this "
                 "one begins early",
             .next = "let every block call simt::wait_for_last_launch()"};
  if (!completed_) {
    abandon_block();
    group->abandon();
    return abandoned_ ? std::nullopt : found;
  }
  finish_block();
  if (job->cluster_blocks > 1) group->leave(rank);
  return found;
}

/// Runs the threads of the block until all have left. @returns their first fault, if any
std::optional<fault_info> worker::run_threads() {
  std::optional<fault_info> found;
  bool ready = true, went_on = false;
  for (bool done = false; !done && !found && !abandoned_;) {
    if (ready) {
      found = run_until_all_wait();
      went_on = true;
    }
    if (!found && unwritten_ && unwritten_->where == space::shared) found = unwritten_;
    if (found) break;
    if (waiting_for_others_ > 0) {
      deliver();
      found = wake(ready);
      if (ready || found) continue;
      const cluster_group::turn turn = group->pass(rank, went_on);
      went_on = false;
      abandoned_ = turn == cluster_group::turn::abandoned;
      if (turn == cluster_group::turn::stuck) found = stuck_fault();
    } else {
      found = meet_at_barrier(done);
      if (done && !found) found = left_too_early();
      ready = true;
    }
  }
  return found;
}

void worker::access(const void* pc, std::uintptr_t address, unsigned size, bool write) {
  if (!check_global(pc, address, size, write)) return;
  note(pc, address, size, write, space::global);
  for (const traced_row& row : job->trace) {
    if (address - row.matrix_begin >= row.matrix_end - row.matrix_begin) continue;
    warp& w = warps_[current->warp];
    (address - row.begin < row.end - row.begin ? w.touched_row : w.touched_other_row) = true;
  }
}

/// A thread that begins early does what it may do only once it has waited.
void worker::require_waited(const char* text, const char* file, int line) {
  if (job->check && current->has_to_wait)
    fail({.kind = fault_kind::race, .site = {file, line}, .text = text, .next = wait_advice});
}

void worker::begin_next_launch(const char* file, int line) {
  require_waited("lets the next launch begin, which counts on all before: this one begins early", file, line);
}

/// Neither counted nor held against other accesses: blocks that count in one word are no race.
unsigned worker::fetch_increment(const void* pc, unsigned* p, const char* file, int line) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  require_waited("counts in a word that the launch before may still use: this one begins early", file, line);
  if (job->check && (written_flags(address, 1) || !check_global(pc, address, sizeof *p, false)))
    fail({.kind = fault_kind::host_memory,
          .site = {file, line},
          .text = "counts in a word that is in no device buffer",
          .next = "count in global memory: a buffer that simt::allocate returned"});
  if (counters.empty() || counters.back() != address) counters.push_back(address);
  return __atomic_fetch_add(p, 1, __ATOMIC_RELAXED);
}

/// Global memory; anything else is handed on. @returns true if the address is in a device buffer
bool worker::check_global(const void* pc, std::uintptr_t address, unsigned size, bool write) {
  const buffer_region* r = nullptr;
  for (const buffer_region* candidate : recent_)
    if (candidate && address - candidate->map_begin < candidate->map_end - candidate->map_begin)
      r = candidate;
  if (!r) {
    if (on_own_stack(address) || check_shared(pc, address, size, write)) return false;
    r = find_region(address);
    if (!r) {
      check_elsewhere(pc, address, size, write);
      return false;
    }
    recent_[next_recent_++ % std::size(recent_)] = r;
  }
  // Made where it is needed: nearly every access is right, and this is the simulator's busiest function.
  const auto fault_here = [&](fault_kind kind, std::string text, std::string next) {
    return fault_info{.kind = kind,
                      .block = block_,
                      .thread = current->linear,
                      .pc = pc,
                      .address = address,
                      .size = size,
                      .write = write,
                      .where = space::global,
                      .text = std::move(text),
                      .next = std::move(next)};
  };
  if (!r->alive)
    fail(fault_here(fault_kind::use_after_free, region_text(*r) + " has been released",
                    "keep the buffer until every launch that uses it has been synchronised"));
  const std::uintptr_t offset = address - r->begin;
  if (address < r->begin || offset + size > r->bytes)
    fail(fault_here(
        fault_kind::out_of_bounds,
        address < r->begin
            ? std::to_string(r->begin - address) + " bytes before the start of " + region_text(*r)
            : std::to_string(offset - std::min<std::uintptr_t>(offset, r->bytes)) +
                  " bytes past the end of " + region_text(*r),
        "check the row and column against the shape before the access; a masked lane takes the identity "
        "instead"));
  const bool chunk = size > sizeof(vector16);  // what is copied whole has its own rule
  if (!chunk && address % size != 0)
    fail(fault_here(fault_kind::misaligned,
                    "byte " + std::to_string(offset) + " of " + region_text(*r) + misaligned_text(size),
                    misaligned_advice));
  if (current->has_to_wait && (write || holds_any(job->under_way, address, size)))
    fail(fault_here(fault_kind::race,
                    "byte " + std::to_string(offset) + " of " + region_text(*r) +
                        (write ? ", which the launch before may still use: this one begins early"
                               : ", written by the launch before, which may not have ended: this one begins "
                                 "early"),
                    wait_advice));
  if (write)
    std::memset(r->written + offset, 1, size);
  else if (!unwritten_ && !all_set(r->written + offset, size))
    unwritten_ =
        fault_here(fault_kind::uninitialised,
                   "byte " + std::to_string(offset) + " of " + region_text(*r) + " was never written",
                   "write it in an earlier kernel or on the host, or do not read it");
  return true;
}

/// Logs an access that is right by itself, and holds it against the others since the last barrier.
void worker::note(const void* pc, std::uintptr_t address, unsigned size, bool write, space where) {
  const accessed a{pc, address, size, write, where};
  add_access(a, address, size);
  if (where == space::shared) {
    if (write) require_quiet(pc, address, size);
    if (job->cluster_blocks > 1) note_in_cluster(*this, address, a);
  }
  warps_[current->warp].log.record(pc, current->index, address, size, write, where);
}

/// Holds `size` bytes of an access against the others since the last barrier.
void worker::add_access(const accessed& a, std::uintptr_t address, unsigned size) {
  const access_stamp stamp = access_stamp::of(warps_[current->warp].epoch, current->linear, a.pc);
  if (const auto conflict = recent_accesses_.add(address, size, a.write, stamp))
    fail_by_race(a, block_, conflict->earlier.thread(), conflict->earlier.pc, conflict->earlier_wrote);
}

void worker::fail_by_race(const accessed& a, std::uint64_t other_block, int other_thread,
                          const void* other_pc, bool other_write) {
  fault_info f{.kind = fault_kind::race,
               .block = block_,
               .thread = current->linear,
               .pc = a.pc,
               .address = a.address,
               .size = a.size,
               .write = a.write,
               .where = a.where,
               .other_block = other_block,
               .other_thread = other_thread,
               .other_pc = other_pc,
               .other_write = other_write};
  describe_race(f, job->warp_size);
  fail(std::move(f));
}

/// Shared memory, static or dynamic. @returns false if the address is neither
bool worker::check_shared(const void* pc, std::uintptr_t address, unsigned size, bool write) {
  const auto own = reinterpret_cast<std::uintptr_t>(&running);
  if (address + size > own && address < own + sizeof running)
    fail({.kind = fault_kind::out_of_bounds,
          .pc = pc,
          .address = address,
          .size = size,
          .write = write,
          .where = space::shared,
          .text = "outside every __shared__ array",
          .next = "keep the index below the length of the array"});
  unsigned char* written = written_flags(address, size);
  if (!written) return false;
  if (address % size != 0)
    fail({.kind = fault_kind::misaligned,
          .pc = pc,
          .address = address,
          .size = size,
          .write = write,
          .where = space::shared,
          .text = "the address" + misaligned_text(size),
          .next = misaligned_advice});
  if (write) {
    std::memset(written, 1, size);
  } else if (!unwritten_ && !all_set(written, size)) {
    unwritten_ = {.kind = fault_kind::uninitialised,
                  .block = block_,
                  .thread = current->linear,
                  .pc = pc,
                  .address = address,
                  .size = size,
                  .write = false,
                  .where = space::shared,
                  .text = "no thread of this block has written that place",
                  .next =
                      "let each entry be written, and a __syncthreads() stand between, before any thread "
                      "reads it"};
    if (under_way(address, size)) {
      unwritten_->text = "what is on its way there has not arrived";
      unwritten_->next = "wait at the barrier that counts its bytes before you read it";
    }
  }
  note(pc, address, size, write, space::shared);
  return true;
}

/// A private local. The page below counts as its own: what overflows the stack crashes there, and the crash
/// has its report.
bool worker::on_own_stack(std::uintptr_t address) const {
  const auto own = reinterpret_cast<std::uintptr_t>(stack_of(*current)) - page_bytes();
  return address - own < guarded_stack_bytes();
}

/// Neither a device buffer, nor shared memory, nor a private local: a constant, or a mistake.
void worker::check_elsewhere(const void* pc, std::uintptr_t address, unsigned size, bool write) {
  const std::size_t page = page_bytes();
  if (!write && address - reinterpret_cast<std::uintptr_t>(job->arguments) < job->argument_bytes) return;
  if (!write && is_constant(address)) return;
  fault_info f{.pc = pc, .address = address, .size = size, .write = write, .where = space::global};
  const auto dynamic_begin = reinterpret_cast<std::uintptr_t>(dynamic_shared);
  if (job->shared_bytes > 0 && address - dynamic_begin + page < job->shared_bytes + 2 * page) {
    f.kind = fault_kind::out_of_bounds;
    f.where = space::shared;
    f.text =
        "outside the " + std::to_string(job->shared_bytes) + " bytes of dynamic shared memory of this launch";
    f.next = "ask for more shared memory in the launch, or keep the index below what was asked for";
  } else if (address < page) {
    f.kind = fault_kind::host_memory;
    f.text = "the pointer is null, or an index into a null pointer";
    f.next = "pass a buffer that simt::allocate returned";
  } else {
    f.kind = fault_kind::host_memory;
    f.text = "the address belongs to no device buffer; it may be host memory or a wild index";
    f.next = "pass a buffer that simt::allocate returned, and widen row * ld to 64 bits before you multiply";
  }
  fail(std::move(f));
}

namespace {

/// Workers live as long as the program, for their stacks.
std::vector<std::unique_ptr<worker>>& workers(std::size_t at_least) {
  static std::vector<std::unique_ptr<worker>> pool;
  while (pool.size() < at_least) pool.push_back(std::make_unique<worker>());
  return pool;
}

/// The fault of the second of two blocks that meet at a byte.
fault_info race_of_blocks(const block_conflict& c, const launch_job& job) {
  fault_info f{.kind = fault_kind::race,
               .block = c.second.block,
               .thread = c.second.thread_at(c.address),
               .pc = c.second.pc,
               .address = c.address,
               .size = c.second.size,
               .write = c.second.write,
               .where = space::global,
               .other_block = c.first.block,
               .other_thread = c.first.thread_at(c.address),
               .other_pc = c.first.pc,
               .other_write = c.first.write};
  describe_race(f, job.warp_size);
  return f;
}

std::string cluster_problem(const geometry& g, int blocks) {
  const int most = configuration().cluster_blocks;
  if (blocks < 1 || blocks > std::max(1, most))
    return "clusters of " + std::to_string(blocks) + " blocks, and this GPU has " +
           (most > 1 ? "at most " + std::to_string(most) : "no clusters");
  if (g.grid.x % static_cast<unsigned>(blocks) != 0)
    return "a grid of " + std::to_string(g.grid.x) + " blocks is no multiple of clusters of " +
           std::to_string(blocks);
  return "";
}

bool valid(const geometry& g) {
  const std::uint64_t threads = std::uint64_t{g.block.x} * g.block.y * g.block.z;
  return threads >= 1 && threads <= max_threads_per_block && g.block.z <= 64 && g.grid.x >= 1 &&
         g.grid.x <= 0x7fffffffu && g.grid.y >= 1 && g.grid.y <= 65535 && g.grid.z >= 1 &&
         g.grid.z <= 65535 && g.shared_bytes <= configuration().shared_bytes;
}

}  // namespace
}  // namespace detail

using namespace detail;

void run_grid(const void* kernel, const geometry& g, int cluster_blocks,
              void (*invoke)(const void*, const void*), const void* arguments, std::size_t argument_bytes) {
  if (const std::string problem = cluster_problem(g, cluster_blocks); !problem.empty())
    throw error(error_text("launch of " + kernel_name(kernel), problem,
                           "Launch whole clusters of at most simt::most_cluster_blocks() blocks.", g.file,
                           g.line));
  if (!valid(g))
    throw error(error_text("launch of " + kernel_name(kernel),
                           "a block of " + std::to_string(g.block.x) + "x" + std::to_string(g.block.y) + "x" +
                               std::to_string(g.block.z) + " threads with " + std::to_string(g.shared_bytes) +
                               " bytes of shared memory in a grid of " + std::to_string(g.grid.x) + "x" +
                               std::to_string(g.grid.y) + "x" + std::to_string(g.grid.z) + ": " +
                               describe(status::invalid_configuration),
                           advice(status::invalid_configuration), g.file, g.line));
  const settings& s = configuration();
  const launch_job job{.kernel = kernel,
                       .invoke = invoke,
                       .arguments = arguments,
                       .argument_bytes = argument_bytes,
                       .grid = g.grid,
                       .block = g.block,
                       .shared_bytes = g.shared_bytes,
                       .warp_size = s.warp_size,
                       .check = s.check,
                       .name = kernel_name(kernel),
                       .by_line = s.by_line,
                       .trace = s.trace,
                       .cluster_blocks = cluster_blocks,
                       .begins_early = g.begins_early,
                       .under_way = g.begins_early ? under_way : std::vector<byte_range>(),
                       .launched = {g.file, g.line}};
  under_way.clear();
  const std::uint64_t blocks = std::uint64_t{g.grid.x} * g.grid.y * g.grid.z;
  const std::uint64_t wanted = s.workers > 0 ? s.workers : std::max(1u, std::thread::hardware_concurrency());
  // Each stack and its guard are two mappings, and Linux gives a process 65530 of them by default.
  constexpr std::uint64_t most_workers = 16;
  const std::uint64_t cores = std::min(wanted, most_workers);
  // Each block of a cluster has a worker of its own, though they take turns.
  const auto in_cluster = static_cast<std::uint64_t>(cluster_blocks);
  const std::uint64_t clusters = blocks / in_cluster;
  const std::uint64_t at_once =
      std::max<std::uint64_t>(1, std::min({clusters, cores, most_workers / in_cluster}));
  const auto count = static_cast<std::size_t>(at_once * in_cluster);
  launch_record record;
  record.kernel = job.name;
  record.instance = kernel_instance(kernel);
  record.grid = static_cast<unsigned>(blocks);
  record.block = g.block.x * g.block.y * g.block.z;
  record.shared_bytes = g.shared_bytes;
  if (!s.execute) {
    record_list().push_back(record);
    return;
  }
  auto& pool = workers(count);
  std::deque<cluster_group> groups;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % in_cluster == 0) groups.emplace_back(cluster_blocks);
    pool[i]->group = &groups.back();
    pool[i]->rank = static_cast<int>(i % in_cluster);
    groups.back().members[i % in_cluster] = pool[i].get();
  }

  std::atomic<std::uint64_t> next{0};
  // Reports must not depend on which worker was faster: of several faults, the one in the first block counts.
  std::atomic<std::uint64_t> first_fault{UINT64_MAX};
  std::mutex guard;
  std::optional<fault_info> fault;
  [[maybe_unused]] const crash_watch watch;
  std::exception_ptr trouble;
  std::vector<char> began(count);  // the host may not have a thread for each
  const auto work = [&](std::size_t i, bool reports_progress) {
    worker& w = *pool[i];
    try {
      [[maybe_unused]] const signal_stack stack;
      w.begin(job);
      began[i] = 1;
      std::uint64_t done = 0;
      const auto pick = [&]() -> std::optional<std::uint64_t> {
        const std::uint64_t cluster = next.fetch_add(1);
        if (cluster >= clusters || cluster * in_cluster >= first_fault.load()) return std::nullopt;
        return cluster;
      };
      for (;;) {
        w.prepare_block();
        const auto cluster = w.group->next(w.rank, pick);
        if (!cluster) break;
        const std::uint64_t b = *cluster * in_cluster + static_cast<std::uint64_t>(w.rank);
        if (auto found = w.run_block(b)) {
          const std::scoped_lock lock(guard);
          // A block that ran to its end read what nobody had written. A later block may write it: go on.
          if (!w.completed()) first_fault = std::min(b, first_fault.load());
          if (!fault || b < fault->block) fault = std::move(found);
        }
        if (reports_progress && ++done % 64 == 0)
          s.on_progress(static_cast<double>(b) / static_cast<double>(blocks));
      }
    } catch (...) {
      const std::scoped_lock lock(guard);
      trouble = std::current_exception();
      w.group->abandon();
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 1; i < count; ++i) threads.emplace_back([&, i] { work(i, false); });
    } catch (const std::system_error&) {
      // No more threads to be had: those that run take the blocks, but a cluster needs all of its own.
      if (in_cluster > 1) {
        for (cluster_group& g : groups) g.abandon();
        throw error(error_text("launch of " + job.name,
                               "the system has no more threads for the blocks of a cluster",
                               "Use --threads 1.", g.file, g.line));
      }
    }
    work(0, static_cast<bool>(s.on_progress));
  }
  if (trouble) std::rethrow_exception(trouble);
  std::vector<const worker*> ran;
  for (std::size_t i = 0; i < count; ++i)
    if (began[i]) ran.push_back(pool[i].get());
  std::vector<extent> touched;
  for (const worker* w : ran)
    for (const extent& e : w->extents)
      if (e.block < first_fault.load()) touched.push_back(e);
  if (const auto race = find_conflict(touched)) fault = race_of_blocks(*race, job);
  if (fault) throw explain(*fault, job);

  for (const extent& e : touched)
    if (e.write) under_way.push_back({e.begin, e.end});
  for (const worker* w : ran)
    for (const std::uintptr_t counter : w->counters)
      under_way.push_back({counter, counter + sizeof(unsigned)});
  join(under_way);

  for (const worker* w : ran) {
    const launch_record& t = w->totals;
    record.global_load += t.global_load;
    record.global_store += t.global_store;
    record.shared_load += t.shared_load;
    record.shared_store += t.shared_store;
    record.barriers += t.barriers;
    record.shuffles += t.shuffles;
    record.prefetched_bytes += t.prefetched_bytes;
    record.static_shared_bytes = std::max(record.static_shared_bytes, t.static_shared_bytes);
    record.loaded_at_once = std::max(record.loaded_at_once, t.loaded_at_once);
    record.traces.insert(record.traces.end(), t.traces.begin(), t.traces.end());
  }
  std::sort(record.traces.begin(), record.traces.end(), [](const warp_trace& a, const warp_trace& b) {
    return std::pair(a.block, a.warp) < std::pair(b.block, b.warp);
  });
  if (s.by_line) {
    statement_table all;
    for (const worker* w : ran)
      for (const auto& [key, traffic] : w->statements) {
        static_cast<line_traffic&>(all[key]) += traffic;
        if (traffic.again) all[key].again = traffic.again;
      }
    record.lines = by_line(all);
  }
  record_list().push_back(record);
}

unsigned fetch_increment(unsigned* p, const char* file, int line) {
  const inside_simulator inside;
  return inside.w.fetch_increment(__builtin_return_address(0), p, file, line);
}
void begin_next_launch(const char* file, int line) {
  const inside_simulator inside;
  inside.w.begin_next_launch(file, line);
}
void wait_for_last_launch() {
  const inside_simulator inside;
  inside.w.wait_for_last_launch();
}
void block_barrier(const char* file, int line) {
  const inside_simulator inside;
  inside.w.wait(lane_state::at_barrier, file, line);
}
void warp_barrier(const char* file, int line) {
  const inside_simulator inside;
  inside.w.wait(lane_state::at_warp_barrier, file, line);
}
std::uint64_t exchange(exchange_kind kind, value_kind type, int width, std::uint64_t bits, int operand,
                       const char* file, int line) {
  const inside_simulator inside;
  return inside.w.exchange(kind, type, width, bits, operand, file, line);
}
void* dynamic_shared_memory() noexcept { return running->dynamic_shared; }

unsigned thread_x() noexcept { return running->current->x; }
unsigned thread_y() noexcept { return running->current->y; }
unsigned thread_z() noexcept { return running->current->z; }
unsigned block_x() noexcept { return running->block_index.x; }
unsigned block_y() noexcept { return running->block_index.y; }
unsigned block_z() noexcept { return running->block_index.z; }
unsigned block_size_x() noexcept { return running->job->block.x; }
unsigned block_size_y() noexcept { return running->job->block.y; }
unsigned block_size_z() noexcept { return running->job->block.z; }
unsigned grid_size_x() noexcept { return running->job->grid.x; }
unsigned grid_size_y() noexcept { return running->job->grid.y; }
unsigned grid_size_z() noexcept { return running->job->grid.z; }

}  // namespace sim
}  // namespace simt
