// An index for scatter or gather that repeats one number along each row and is written out in memory: of one that is
// expanded, a view, torch sees that it is of whole rows, and takes them at once. On the host; on devices it has not
// been measured.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/inputs.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"
#include "model/input_text.h"

namespace stepscope::diagnose::causes {
namespace {

// What an expanded index leaves of the time, of 20,000 to 100,000 rows of 32 to 256 numbers, with one thread and with
// two.
struct Left {
  double least, most;
};
constexpr Left kOfGather{0.04, 0.13}, kOfSum{0.08, 0.46}, kOfReduction{0.04, 0.32};
constexpr std::int64_t kLeastWidth = 32;  // numbers in a row
constexpr std::size_t kNear = 40;         // operators between the index and what takes it

bool is_of_longs(const Operator& one) { return one.inputs->has_type("long int"); }

// Has it one number for each row of that index, as [rows, 1]?
bool is_of_rows(const Operator& one, const Sizes& index) {
  const Sizes& sizes = one.inputs->shapes.front().sizes;
  return sizes.size() == index.size() && sizes.front() == index.front() &&
         std::all_of(sizes.begin() + 1, sizes.end(), [](std::int64_t size) { return size == 1; });
}

bool expands(const Operator& one, const Sizes& index) {
  return (one.name == "aten::expand" || one.name == "aten::expand_as") && is_of_longs(one) && is_of_rows(one, index);
}

// Does it write an index of these sizes, in each row the same number again and again? `before`: the operator before it.
bool writes_out(const Operator& one, const Operator& before, const Sizes& index) {
  if (!is_of_longs(one)) return false;
  if (one.name == "aten::repeat" || one.name == "aten::tile") {
    if (!is_of_rows(one, index) || one.inputs->values.size() < 2) return false;
    const auto times = parse_sizes(one.inputs->values[1]);
    return times && times->size() == index.size() && times->front() == 1 &&
           std::equal(times->begin() + 1, times->end(), index.begin() + 1);
  }
  return (one.name == "aten::contiguous" || one.name == "aten::clone") && is_same_place(before, one) &&
         expands(before, index) && one.inputs->shapes.front().sizes == index;
}

// The backward pass of a gather is a sum, and the other way round.
bool is_gather(const Operator& one) { return one.name == "aten::gather"; }
bool sums(const Operator& one) { return one.name == "aten::scatter_add" || one.name == "aten::scatter_add_"; }
bool reduces(const Operator& one) { return one.name == "aten::scatter_reduce" || one.name == "aten::scatter_reduce_"; }

// Takes or gives rows of floating numbers by an index of their size, over the first dimension, as torch's way for whole
// rows asks for.
bool goes_by_index(const Operator& one) {
  const std::vector<Shape>& shapes = one.inputs->shapes;
  if (!is_gather(one) && !sums(one) && !reduces(one)) return false;
  if (shapes.size() < 4 || one.inputs->types.empty()) return false;
  const std::string_view type = one.inputs->types.front();
  const Sizes& index = shapes[2].sizes;
  const Sizes& rows = shapes[is_gather(one) ? 0 : 3].sizes;
  const auto dimensions = static_cast<std::int64_t>(index.size());
  const std::int64_t over = one.inputs->number(1, -1);
  return (type == "float" || type == "double" || type == "c10::BFloat16") && dimensions > 1 && index.front() > 0 &&
         elements(index) / index.front() >= kLeastWidth && (over == 0 || over == -dimensions) &&
         rows.size() == index.size() && std::equal(rows.begin() + 1, rows.end(), index.begin() + 1);
}

// What writes the index of that one; nullptr: nothing that is known.
const Operator* writer_of(const std::vector<Operator>& all, std::size_t at) {
  const Sizes& index = all[at].inputs->shapes[2].sizes;
  for (std::size_t back = 1; back <= std::min(at, kNear); back++) {
    const Operator& one = all[at - back];
    if (!is_same_place(one, all[at])) return nullptr;
    const Operator& before = all[at - std::min(back + 1, at)];
    if (writes_out(one, before, index)) return &one;
    if (expands(one, index)) return nullptr;  // which is given as it is
  }
  return nullptr;
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
        const Operator *heaviest = nullptr, *taker = nullptr;
        std::int64_t most = 0;
        std::set<const Operator*> written;
        for (std::size_t i = 0; i < all.size(); i++) {
          const Operator* writer = goes_by_index(all[i]) ? writer_of(all, i) : nullptr;
          if (writer == nullptr) continue;
          const Left forth = is_gather(all[i]) ? kOfGather : sums(all[i]) ? kOfSum : kOfReduction;
          const Left back = sums(all[i]) ? kOfGather : kOfSum;
          work_of.add(pass.nodes(*all[i].trace, all[i].slice), all[i].name, forth.least, forth.most);
          // Of another reduction the backward pass does more than take rows again.
          if (!reduces(all[i])) {
            work_of.add(pass.backward_nodes(*all[i].trace, all[i].slice), all[i].name, back.least, back.most);
          }
          if (written.insert(writer).second) {
            work_of.add(pass.nodes(*writer->trace, writer->slice), writer->name, 0, 0);
          }
          const std::int64_t numbers = elements(all[i].inputs->shapes[2].sizes);
          if (numbers > most) most = numbers, heaviest = writer, taker = &all[i];
        }
        if (heaviest == nullptr) return;
        work_of.add_outputs();
        if (!work_of.worth_saying()) return;
        std::string next =
            "Give the expanded index, a view of one number for each row, as it is, with no repeat() or contiguous(): "
            "torch then takes whole rows";
        if (is_gather(*taker)) next += "; or take them with index_select(0, index)";
        if (sums(*taker)) next += "; or sum them with index_add_(0, index, source)";
        Diagnosis found = work_of.diagnosis(
            {.cause = "model",
             .sentence =
                 "An index for scatter or gather is written out for each number of a row, so that rows are taken "
                 "number by number",
             .next = std::move(next)});
        const Code code = about.code(*heaviest->trace, heaviest->slice);
        if (code.call_line > 0) code.put_into(found.finding.where);
        found.finding.evidence.push_back({.text = "Numbers of the index", .value = most, .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
