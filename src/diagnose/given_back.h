// Memory of the host that tensors let go of: large ones go back to the system, which takes a while for each page.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "diagnose/case.h"

namespace stepscope::diagnose {

// Of memory that goes back when a tensor is let go, a mebibyte or more; as often as fast or as slow.
inline constexpr std::int64_t kLargeBytes = 1 << 20;
inline constexpr double kLeastBytesPerNs = 10, kMostBytesPerNs = 40;

class GivenBack {
 public:
  explicit GivenBack(const Case& about);

  // Of large tensors that its thread lets go of in that work.
  std::int64_t bytes(std::uint32_t node) const;
  // Where what was made in that work is let go of, outside of the operator that made it.
  struct Output {
    std::uint32_t node = 0;
    std::int64_t bytes = 0;
  };
  const std::vector<Output>& outputs(std::uint32_t node) const;

 private:
  std::unordered_map<std::uint32_t, std::int64_t> bytes_;
  std::unordered_map<std::uint32_t, std::vector<Output>> outputs_;
};

// Shared by the causes of a case.
const GivenBack& given_back(const Case& about);

}  // namespace stepscope::diagnose
