// The call stack of one thread as HTA builds it: starts and ends in time order, each start becomes a child of what was
// started last, each end takes away what was started last, whatever that is.
#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <string_view>
#include <tuple>
#include <vector>

#include "compat/hta/table.h"

namespace stepscope::compat::hta {

// Process and thread ids in the order of a pandas group-by: numbers first, then texts.
struct NumberFirst {
  bool is_text = false;
  std::int64_t number = 0;
  std::string_view text;

  explicit NumberFirst(std::string_view id) {
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    is_text = error != std::errc() || end != id.data() + id.size();
    if (is_text) {
      number = 0;
      text = id;
    }
  }
  bool operator<(const NumberFirst& other) const {
    return std::tie(is_text, number, text) < std::tie(other.is_text, other.number, other.text);
  }
};

class CallStack {
 public:
  static constexpr std::uint32_t kRoot = UINT32_MAX;

  // Two events without duration at the same time: HTA has both ways.
  enum class Empty : std::uint8_t { one_by_one, nested };

  explicit CallStack(const std::vector<Row>& rows, Empty empty = Empty::one_by_one);

  std::uint32_t parent(std::uint32_t row) const { return parents_[row]; }
  const std::vector<std::uint32_t>& children(std::uint32_t row) const { return children_[row]; }
  const std::vector<std::uint32_t>& roots() const { return roots_; }

  // Depth first: enter(row, index of the parent event or -1) before its children, leave(…) after them.
  using Visit = std::function<void(std::uint32_t row, std::int64_t parent)>;
  void visit(const Visit& enter, const Visit& leave) const;

 private:
  const std::vector<Row>& rows_;
  std::vector<std::uint32_t> parents_;
  std::vector<std::vector<std::uint32_t>> children_;
  std::vector<std::uint32_t> roots_;
};

}  // namespace stepscope::compat::hta
