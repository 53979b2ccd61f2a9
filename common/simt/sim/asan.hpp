#pragma once
/// @file
/// Tells AddressSanitizer, where it is compiled in, which stack the code runs on, and Valgrind, where its
/// header is installed, what the stacks are. Costs nothing otherwise.
#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1  // as gcc spells it
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif

namespace simt {
inline namespace sim {
namespace detail {

/// A stack that a program makes itself. @returns what remove_stack() wants to hear
inline unsigned add_stack([[maybe_unused]] void* bottom, [[maybe_unused]] std::size_t bytes) {
#if defined(VALGRIND_STACK_REGISTER)
  return VALGRIND_STACK_REGISTER(bottom, static_cast<char*>(bottom) + bytes);
#else
  return 0;
#endif
}
inline void remove_stack([[maybe_unused]] unsigned id) {
#if defined(VALGRIND_STACK_REGISTER)
  VALGRIND_STACK_DEREGISTER(id);
#endif
}

/// One side of a switch between stacks. leave() comes before a switch away, arrive() after the way back.
class stack_switch {
 public:
  void leave([[maybe_unused]] const void* target_bottom, [[maybe_unused]] std::size_t target_bytes) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fake_stack_, target_bottom, target_bytes);
#endif
  }
  /// Optionally learns which stack was left.
  void arrive([[maybe_unused]] const void** from_bottom = nullptr,
              [[maybe_unused]] std::size_t* from_bytes = nullptr) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack_, from_bottom, from_bytes);
#endif
  }

 private:
  [[maybe_unused]] void* fake_stack_ = nullptr;
};

/// The frames on this stack are abandoned: what they marked is free again.
inline void forget_stack([[maybe_unused]] void* bottom, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(bottom, bytes);
#endif
}

}  // namespace detail
}  // namespace sim
}  // namespace simt
