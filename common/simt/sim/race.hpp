#pragma once
/// @file
/// Two threads, one byte, at least one of them writing, and nothing that orders the two. Within a block every
/// access is held against those since the last barrier; between blocks the addresses are compared after the
/// launch. Nobody outside the simulator includes this.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace simt {
inline namespace sim {
namespace detail {

inline constexpr int most_warps = 32;  // of a block

/// One access, by whom and since which meeting of its warp.
struct access_stamp {
  std::uint64_t when = 0;  // epoch of the warp and thread of the block, packed; 0: none
  const void* pc = nullptr;

  static access_stamp of(std::uint64_t epoch, int thread, const void* pc) {
    return {epoch << 16 | static_cast<std::uint64_t>(thread), pc};
  }
  int thread() const { return static_cast<int>(when & 0xffff); }
};

/// The accesses of a block since its last barrier. What came before is ordered by it, and forgotten.
class block_accesses {
 public:
  struct conflict {
    access_stamp earlier;
    bool earlier_wrote = false;
  };

  /// A new launch, with warps of 1 << warp_shift lanes.
  void begin(int warp_shift);
  /// All threads of the block have met, or a new block begins.
  void forget();
  /// What warp `earlier` did up to this epoch comes before all that warp `later` does from now on.
  void order(int earlier, std::uint64_t epoch, int later) {
    std::uint64_t& known = ordered_[static_cast<std::size_t>(later * most_warps + earlier)];
    known = std::max(known, epoch);
  }
  /// The last epoch of warp `earlier` that comes before what warp `later` does.
  std::uint64_t ordered(int earlier, int later) const {
    return ordered_[static_cast<std::size_t>(later * most_warps + earlier)];
  }
  /// Notes an access. @returns an earlier one that nothing orders before it, if there is one
  std::optional<conflict> add(std::uintptr_t address, unsigned size, bool write, access_stamp me) {
    while (size < (1u << granule_) || address & ((1u << granule_) - 1)) split();
    std::optional<conflict> found;
    const std::uintptr_t last = (address + size - 1) >> granule_;
    for (std::uintptr_t g = address >> granule_; g <= last && !found; ++g) {
      cell& c = at(g);
      found = write ? note_write(c, me) : note_read(c, me);
    }
    return found;
  }

 private:
  /// The last write, and two reads since: of different warps if there were such, else of different lanes.
  /// That is enough to find a read that any later write conflicts with.
  struct cell {
    std::uint64_t key = 0;  // address and generation
    access_stamp write, read[2];
  };
  int warp_of(access_stamp s) const { return s.thread() >> warp_shift_; }
  bool unordered(access_stamp earlier, access_stamp me) const {
    if (earlier.when == 0 || earlier.thread() == me.thread()) return false;
    if (warp_of(earlier) == warp_of(me)) return earlier.when >> 16 == me.when >> 16;
    return earlier.when >> 16 > ordered(warp_of(earlier), warp_of(me));
  }
  std::optional<conflict> note_read(cell& c, access_stamp me);
  std::optional<conflict> note_write(cell& c, access_stamp me);
  cell& at(std::uintptr_t granule) {
    const std::uint64_t key = granule | generation_ << generation_shift;
    if (cells_.empty()) grow();
    cell& likely = cells_[place_of(granule) & (cells_.size() - 1)];
    return likely.key == key ? likely : find(granule, key);
  }
  /// Neighbours stay neighbours; rows that lie a power of two apart do not meet.
  static std::size_t place_of(std::uintptr_t granule) { return granule + (granule >> 8) * 0x9e3779b1u; }
  cell& find(std::uintptr_t granule, std::uint64_t key);
  void grow();
  void split();

  std::array<std::uint64_t, most_warps * most_warps> ordered_{};  // [later][earlier]
  static constexpr int generation_shift = 47;  // above it, an address has no bits
  std::vector<cell> cells_;
  std::size_t used_ = 0;
  std::uint64_t generation_ = 1;
  int granule_ = 2;  // log2 of the bytes of a cell: the narrowest access of the launch
  int warp_shift_ = 5;
};

/// Neighbouring bytes that neighbouring threads of a block accessed at one statement.
struct extent {
  std::uintptr_t begin = 0, end = 0;
  std::uint64_t block = 0;
  const void* pc = nullptr;
  int thread = 0;  // that accessed the first of them
  unsigned size = 0;  // of an access
  bool write = false;
  std::uint64_t cluster = 0;  // of the block
  unsigned phase = 0;  // barriers of the cluster that it had passed

  int thread_at(std::uintptr_t address) const { return thread + static_cast<int>((address - begin) / size); }
};

/// Sorts what one block accessed and joins what lies together.
void condense(std::vector<extent>& of_block);

/// Bytes from begin up to end.
struct byte_range {
  std::uintptr_t begin = 0, end = 0;
};

/// Sorts ranges and joins those that meet.
void join(std::vector<byte_range>& ranges);
/// Is one of the bytes in joined ranges?
bool holds_any(const std::vector<byte_range>& joined, std::uintptr_t address, unsigned size);

/// Two blocks at one byte.
struct block_conflict {
  extent first, second;
  std::uintptr_t address = 0;
};
/// The conflict at the lowest address, whatever the order of the extents; none if each byte that is written
/// belongs to one block. Blocks of one cluster are ordered by its barrier.
std::optional<block_conflict> find_conflict(std::vector<extent>& of_launch);

}  // namespace detail
}  // namespace sim
}  // namespace simt
