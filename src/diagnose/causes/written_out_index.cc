// An index for scatter or gather that repeats one number along each row and is written out in memory: of one that is
// expanded, a view, torch sees that it is of whole rows, and takes them at once. On the host; on devices it has not
// been measured.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/inputs.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

// What an expanded index leaves of the time, of rows of 32 to 256 numbers, with one thread and with two.
constexpr double kLeastLeft = 0.03, kMostLeft = 0.35;
constexpr std::size_t kNear = 40;  // operators between the index and what takes it
constexpr std::string_view kLong = "long int";

// "[1, 48]": 48; 0: no such list.
std::int64_t product_of_list(std::string_view text) {
  std::int64_t out = 0;
  while (!text.empty()) {
    const std::size_t digit = text.find_first_of("0123456789");
    if (digit == std::string_view::npos) break;
    text.remove_prefix(digit);
    std::int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    constexpr std::int64_t kMost = std::int64_t{1} << 30;  // of a file, which may hold anything
    if (read.ec != std::errc() || number > kMost || out > kMost) return 0;
    out = (out == 0 ? 1 : out) * number;
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
  }
  return out;
}

bool is_of_longs(const Operator& one) {
  return !one.inputs->shapes.empty() && !one.inputs->types.empty() && one.inputs->types.front() == kLong;
}

// Has it one number for each row of that index, in the same order?
bool is_of_rows(const Operator& one, const Sizes& index) {
  const Sizes& sizes = one.inputs->shapes.front().sizes;
  return !sizes.empty() && sizes.front() == index.front() && elements(sizes) == index.front();
}

// Does it write an index of these sizes, in each row the same number again and again? `before`: the operator before it.
bool writes_out(const Operator& one, const Operator* before, const Sizes& index) {
  if (!is_of_longs(one)) return false;
  if (one.name == "aten::repeat" || one.name == "aten::tile") {
    const std::vector<std::string>& values = one.inputs->values;
    return is_of_rows(one, index) && values.size() > 1 && index.front() * product_of_list(values[1]) == elements(index);
  }
  if (one.name != "aten::contiguous" && one.name != "aten::clone") return false;
  const bool is_expanded = before != nullptr && (before->name == "aten::expand" || before->name == "aten::expand_as");
  return is_expanded && is_of_longs(*before) && is_of_rows(*before, index) && one.inputs->shapes.front().sizes == index;
}

// Takes or gives rows by an index of its own size, over the first dimension.
bool goes_by_index(const Operator& one) {
  constexpr std::string_view kNames[] = {"aten::scatter_add", "aten::scatter_add_", "aten::scatter_reduce",
                                         "aten::scatter_reduce_", "aten::gather"};
  const std::vector<Shape>& shapes = one.inputs->shapes;
  return std::find(std::begin(kNames), std::end(kNames), one.name) != std::end(kNames) && shapes.size() > 2 &&
         shapes[2].sizes.size() > 1 && elements(shapes[2].sizes) > shapes[2].sizes.front() &&
         one.inputs->number(1, -1) == 0;
}

}  // namespace

Cause written_out_index_cause() {
  return {
      "written_out_index", "Index of rows written out for each number",
      [](const Case& about, std::vector<Diagnosis>& out) {
        if (about.has_device()) return;
        const std::vector<Operator>& all = forward_operators(about);
        const Passes& pass = passes(about);
        Gathered work_of(about);
        const Operator* heaviest = nullptr;
        std::int64_t most = 0;
        for (std::size_t i = 0; i < all.size(); i++) {
          if (!goes_by_index(all[i])) continue;
          const Sizes& index = all[i].inputs->shapes[2].sizes;
          for (std::size_t back = 1; back <= std::min(i, kNear); back++) {
            const std::size_t at = i - back;
            if (!is_same_place(all[at], all[i])) break;
            if (!writes_out(all[at], at > 0 ? &all[at - 1] : nullptr, index)) continue;
            work_of.add(pass.nodes(*all[i].trace, all[i].slice), all[i].name, kLeastLeft, kMostLeft);
            work_of.add(pass.backward_nodes(*all[i].trace, all[i].slice), all[i].name, kLeastLeft, kMostLeft);
            work_of.add(pass.nodes(*all[at].trace, all[at].slice), all[at].name, 0, 0);
            if (elements(index) > most) most = elements(index), heaviest = &all[at];
            break;
          }
        }
        if (heaviest == nullptr) return;
        work_of.add_outputs();
        if (!work_of.worth_saying()) return;
        Diagnosis found = work_of.diagnosis(
            {.cause = "model",
             .sentence =
                 "An index for scatter or gather is written out for each number of a row, so that rows are taken "
                 "number by number",
             .next = "Give index.unsqueeze(1).expand_as(source) as it is, with no repeat() or contiguous(): torch then "
                     "takes whole rows; or sum with index_add_(0, index, source)"});
        const Code code = about.code(*heaviest->trace, heaviest->slice);
        if (code.call_line > 0) code.put_into(found.finding.where);
        found.finding.evidence.push_back({.text = "Numbers of the index", .value = most, .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
