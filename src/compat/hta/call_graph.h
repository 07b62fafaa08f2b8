// The calls of all host threads of a rank as one forest, with the device work under the call that launched it: what
// HTA's kernel sequences and counters are taken from. Rows are numbered as in the table.
#pragma once

#include <cstdint>
#include <vector>

#include "compat/hta/table.h"

namespace stepscope::compat::hta {

class CallGraph {
 public:
  explicit CallGraph(const EventTable& table);

  std::int64_t depth(std::uint32_t row) const { return depth_[row]; }      // -1: in no call stack
  std::int64_t kernels(std::uint32_t row) const { return kernels_[row]; }  // under it
  double kernel_time(std::uint32_t row) const { return kernel_time_[row]; }
  // The row and all under it, each before its children.
  std::vector<std::uint32_t> subtree(std::uint32_t row) const;
  // From the outermost call down to the row.
  std::vector<std::uint32_t> path_to(std::uint32_t row) const;

 private:
  static constexpr std::uint32_t kRoot = UINT32_MAX;

  std::vector<std::uint32_t> add_thread(const std::vector<std::uint32_t>& thread);
  void add_device_work();
  void adopt(std::vector<std::uint32_t>& roots, std::uint32_t parent);
  void measure();

  const EventTable& table_;
  std::vector<std::uint32_t> parent_;
  std::vector<std::vector<std::uint32_t>> children_;
  std::vector<bool> inside_;
  std::vector<std::int64_t> depth_, kernels_;
  std::vector<double> kernel_time_;
};

}  // namespace stepscope::compat::hta
