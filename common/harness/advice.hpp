#pragma once
/// @file
/// What the counts of a source line say about it, as a teacher would put it.
#include <string>

#include "simt/sim/control.hpp"

namespace softmax {

/// What can stand out in a source line.
enum class line_fault {
  none,  ///< nothing does
  bank_conflict,  ///< lanes of a request want different words of one bank
  uncoalesced,  ///< lanes of a request lie far apart
  misaligned,  ///< requests begin inside a sector, and touch one more
  loaded_again,  ///< the block had loaded the bytes before
  single_lane,  ///< one lane moves a few bytes of a sector
  broadcast,  ///< all lanes read one word of shared memory
};
/// "bank conflict"
const char* to_string(line_fault f);

/// What stands out, and what to do about it.
struct line_advice {
  line_fault what = line_fault::none;  ///< none: nothing stands out
  std::string text;  ///< one sentence; empty if there is nothing to say
};

/// What stands out most in a line.
line_advice advise(const simt::line_record& line);

/// What a line is sorted by: the sectors and wavefronts that it takes.
std::uint64_t cost_of(const simt::line_record& line);

}  // namespace softmax
