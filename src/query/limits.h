// What a query may use: the clock it runs against, and the errors that say which limit it hit.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/result.h"
#include "query/query.h"

namespace stepscope::query {

class Deadline {
 public:
  explicit Deadline(double seconds)
      : end_(std::chrono::steady_clock::now() + std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6))) {}
  bool passed() const { return std::chrono::steady_clock::now() > end_; }

 private:
  std::chrono::steady_clock::time_point end_;
};

Error out_of_time(const Limits& limits);
Error out_of_memory(const Limits& limits);

}  // namespace stepscope::query
