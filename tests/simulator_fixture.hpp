#pragma once
/// What tests of the simulator share.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "catch.hpp"
#include "simt/simt.hpp"
#include "source_line.hpp"

/// Restores the simulator's settings when a test ends.
class settings_guard {
 public:
  explicit settings_guard(int warp_size, int cluster_blocks = 0) : saved_(simt::configuration()) {
    simt::configuration().warp_size = warp_size;
    simt::configuration().cluster_blocks = cluster_blocks;
    simt::clear_records();
  }
  ~settings_guard() { simt::configuration() = saved_; }

 private:
  simt::settings saved_;
};

/// Device memory of the test, filled if `values` has any.
template <class T>
class memory {
 public:
  explicit memory(std::size_t count, const char* name = "buffer") : count_(count) {
    void* p = nullptr;
    SIMT_CHECK(simt::allocate(&p, count * sizeof(T), name));
    p_ = static_cast<T*>(p);
  }
  memory(const std::vector<T>& values, const char* name = "buffer") : memory(values.size(), name) {
    SIMT_CHECK(simt::copy_to_device(p_, values.data(), values.size() * sizeof(T)));
  }
  ~memory() {
    if (p_) (void)simt::release(p_);
  }
  memory(const memory&) = delete;
  T* get() const { return p_; }
  void free() {
    SIMT_CHECK(simt::release(p_));
    p_ = nullptr;
  }
  std::vector<T> fetch() const {
    std::vector<T> values(count_);
    SIMT_CHECK(simt::copy_to_host(values.data(), p_, count_ * sizeof(T)));
    return values;
  }

 private:
  T* p_ = nullptr;
  std::size_t count_;
};

inline std::vector<float> ramp(std::size_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 0.0f);
  return v;
}

/// The fault that `run` ends in.
template <class F>
simt::fault fault_of(F&& run) {
  try {
    run();
  } catch (const simt::fault& f) {
    return f;
  }
  FAIL("no fault was reported");
  throw 0;
}

/// Kind and kernel are these, the line is the one in `file` with the marker, and the report has three lines.
inline void check_fault_in(const std::string& file, const simt::fault& f, simt::fault_kind kind,
                           const std::string& kernel, const std::string& marker) {
  INFO(f.what());
  CHECK(simt::to_string(f.kind) == std::string(simt::to_string(kind)));
  CHECK(f.kernel == kernel);
  CHECK(f.file == file);
  CHECK(f.line == line_of(file, marker));
  // The report: what and where, who and what with, what to change.
  const std::string text = f.what();
  CHECK(std::count(text.begin(), text.end(), '\n') == 2);
  CHECK(text.find("thread (") != std::string::npos);
  CHECK(text.find("block (") != std::string::npos);
}
