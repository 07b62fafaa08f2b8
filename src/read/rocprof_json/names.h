// Names: what the tables of a process say of the numbers that its records hold: kinds and operations of calls, messages
// of ROCTx, kernels, counters and agents.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/string_pool.h"
#include "read/rocprof_json/fields.h"

namespace stepscope::read::rocprof {

struct Kernel {
  std::string_view name;
  std::int64_t registers = kAbsent;  // vector registers of a thread
};

struct Agent {
  bool gpu = false;
  DeviceInfo info;  // id: the number of the GPU among those of its machine
};

class Names {
 public:
  // Each takes one element of the table that it is named after.
  void add_kind(const Record& kind);
  void add_marker(const Record& message);
  void add_kernel(const Record& symbol);
  void add_counter(const Record& counter);
  void add_agent(const Record& agent);

  // Records give kinds and operations by number; tools that make this format from CSV files give the words. "":
  // unknown.
  std::string_view kind(const Record& record) const;
  std::string_view operation(const Record& record) const;
  std::string_view marker(std::int64_t correlation) const;
  std::string_view counter(std::int64_t handle) const;
  const Kernel* kernel(std::int64_t id) const;  // null: unknown
  const Agent* agent(std::int64_t handle) const;
  const std::unordered_map<std::int64_t, Agent>& agents() const { return agents_; }

 private:
  struct Kind {
    std::string_view name;
    std::vector<std::string_view> operations;
  };
  const Kind* kind_of(const Record& record) const;
  std::string_view keep(std::string_view text) { return texts_[texts_.intern(text)]; }

  StringPool texts_;
  std::vector<Kind> kinds_;
  std::unordered_map<std::int64_t, std::string_view> markers_, counters_;
  std::unordered_map<std::int64_t, Kernel> kernels_;
  std::unordered_map<std::int64_t, Agent> agents_;
  std::int64_t gpus_ = 0;
};

}  // namespace stepscope::read::rocprof
