#include "model/range_name.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace stepscope {
namespace {

constexpr std::array<std::string_view, 4> kMarks{", seq = ", ", op_id = ", ", sizes = ", ", input_op_ids = "};

// The position behind the bracketed list at text[at]; npos: it does not close.
std::size_t behind_list(std::string_view text, std::size_t at) {
  int depth = 0;
  for (; at < text.size(); at++) {
    if (text[at] == '[' || text[at] == '(') depth++;
    if (text[at] == ']' || text[at] == ')') depth--;
    if (depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

std::string without_blanks(std::string_view text) {
  std::string out(text);
  std::erase(out, ' ');
  return out;
}

// One ", key = value" at `at`; the position behind it, npos when it is none.
std::size_t take(std::string_view text, std::size_t at, RangeName& out) {
  for (std::size_t mark = 0; mark < kMarks.size(); mark++) {
    if (!text.substr(at).starts_with(kMarks[mark])) continue;
    const std::size_t value = at + kMarks[mark].size();
    if (mark >= 2) {
      const std::size_t end = value < text.size() && text[value] == '[' ? behind_list(text, value) : text.npos;
      if (end != text.npos && mark == 2) out.sizes = without_blanks(text.substr(value, end - value));
      return end;
    }
    std::int64_t number = 0;
    const auto parsed = std::from_chars(text.data() + value, text.data() + text.size(), number);
    if (parsed.ec != std::errc()) return text.npos;
    (mark == 0 ? out.sequence : out.call) = number;
    return static_cast<std::size_t>(parsed.ptr - text.data());
  }
  return text.npos;
}

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

RangeName range_name(std::string_view text) {
  std::size_t first = text.npos;
  for (const std::string_view mark : kMarks) first = std::min(first, text.find(mark));
  if (first == text.npos) return {.name = text};
  RangeName out{.name = text.substr(0, first)};
  std::size_t at = first;
  while (at < text.size() && at != text.npos) at = take(text, at, out);
  return at == text.size() ? out : RangeName{.name = text};
}

bool is_operator(const RangeName& range) {
  const std::string_view name = range.name;
  if (name.starts_with("aten::")) return true;
  if (!range.annotated()) return false;
  // Only what autograd saw has a number in its sequence; only operators have inputs with shapes.
  if (range.sequence != kAbsent || !range.sizes.empty()) return true;
  if (name.starts_with("autograd::")) return true;
  // "c10d::allreduce_", "flash_attn::_forward": a library's operator. "FSDP::pre_forward (…)", "nccl:all_reduce" and
  // "Optimizer.step#Adam.step" are marks.
  const std::size_t colons = name.find("::");
  const bool scoped =
      colons != name.npos && colons > 0 && is_lower(name.front()) && name.find_first_of(" (:") == colons;
  return scoped || name == "record_param_comms" || name == "detach" || name == "detach_";
}

}  // namespace stepscope
