// What was odd in a snapshot: counted by kind and key while it is read, told as one issue per kind.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/string_pool.h"
#include "model/issue.h"
#include "read/cuda_snapshot/shapes.h"

namespace stepscope::read::cuda {

enum class FaultKind : std::uint8_t {
  unknown_key,   // left out
  unknown_word,  // an action or state
  not_recorded,  // a key that older versions of torch do not write
  missing,       // a key that every version writes
  wrong_type,    // the value is not what the key stands for; left empty
  outside,       // a row that no list of the snapshot holds
  count,
};

class Faults {
 public:
  // `what`: the key or word; none: the shape says it all.
  void note(FaultKind kind, Shape shape, StringId what, std::uint64_t offset, std::uint64_t count = 1);
  void note(FaultKind kind, Shape shape, Word what, std::uint64_t offset) {
    note(kind, shape, static_cast<StringId>(what), offset);
  }
  std::vector<Issue> issues(const StringPool& strings, const std::string& path) const;

 private:
  static constexpr std::size_t kMostNames = 1000;  // distinct ones; the rest is only counted
  struct Fault {
    std::uint64_t count = 0, offset = 0;
  };
  std::map<std::tuple<FaultKind, Shape, StringId>, Fault> faults_;
};

}  // namespace stepscope::read::cuda
