// What is done to all of a tensor, of which a slice is all that is used behind it: pictures that are cropped last, odds
// of every word where the last one's are taken.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/loops.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::int64_t kTimesAsMany = 3;          // elements as are left, at least
constexpr std::int64_t kLeastElements = 1 << 14;  // of the whole: of fewer a call costs more than what it does
constexpr double kMostMore = 1.5;                 // a slice does not lie in one piece
constexpr std::size_t kLongestChain = 32, kMostCuts = 8, kFarthest = 1024;  // operators
constexpr std::int64_t kLongest = std::int64_t{1} << 40;                    // of a dimension: more is no tensor

bool is_cut(std::string_view name) { return name == "aten::slice" || name == "aten::narrow" || name == "aten::select"; }

// What such an operator leaves of a tensor; nullopt: not known.
std::optional<Sizes> left_by(const Operator& cut) {
  if (cut.inputs->shapes.empty() || cut.inputs->shapes[0].sizes.empty()) return std::nullopt;
  Sizes sizes = cut.inputs->shapes[0].sizes;
  constexpr std::int64_t kNone = -1'000'000;
  const auto rank = static_cast<std::int64_t>(sizes.size());
  std::int64_t along = cut.inputs->number(1, kNone);
  if (along < 0) along += rank;
  if (along < 0 || along >= rank) return std::nullopt;
  const auto at = static_cast<std::size_t>(along);
  if (cut.name == "aten::select") {
    sizes.erase(sizes.begin() + along);
    return sizes;
  }
  const std::int64_t all = sizes[at];
  if (all <= 0 || all > kLongest) return std::nullopt;
  if (cut.name == "aten::narrow") {
    sizes[at] = cut.inputs->number(3, all);
    return sizes[at] >= 0 && sizes[at] <= all ? std::optional(sizes) : std::nullopt;
  }
  const auto bound = [&](std::size_t input, std::int64_t otherwise) {
    const std::int64_t said = cut.inputs->number(input, otherwise);
    return std::clamp<std::int64_t>(said < 0 ? said + all : said, 0, all);
  };
  const std::int64_t from = bound(2, 0), to = bound(3, all);
  const std::int64_t step = std::clamp<std::int64_t>(cut.inputs->number(4, 1), 1, all);
  sizes[at] = std::max<std::int64_t>(0, (to - from + step - 1) / step);
  return sizes;
}

// Does it cut along the last dimension?
bool is_last(const Operator& cut, std::size_t dimensions) {
  const auto last = static_cast<std::int64_t>(dimensions) - 1;
  const std::int64_t along = cut.inputs->number(1, last);
  return along == last || along == -1;
}

// What is left of a tensor behind all cuts of it that come in a row.
struct Cut {
  Sizes whole;
  std::int64_t left = 0;  // elements
  bool in_rows = false;   // the last dimension stays as it is
  std::size_t last = 0;   // of the operators that cut
};

std::optional<Cut> cut_at(const std::vector<Operator>& all, std::size_t at) {
  if (!is_cut(all[at].name) || all[at].inputs->shapes.empty()) return std::nullopt;
  Cut out{.whole = all[at].inputs->shapes[0].sizes, .left = 0, .in_rows = true, .last = at};
  if (elements(out.whole) < kLeastElements) return std::nullopt;
  Sizes now = out.whole;
  for (std::size_t k = at; k < all.size() && k - at < kMostCuts && is_cut(all[k].name); k++) {
    if (!is_same_place(all[k], all[at]) || all[k].inputs->shapes.empty() || all[k].inputs->shapes[0].sizes != now)
      break;
    const std::optional<Sizes> left = left_by(all[k]);
    if (!left || left->empty()) return std::nullopt;
    out.in_rows = out.in_rows && (*left == now || !is_last(all[k], now.size()));
    now = *left;
    out.last = k;
  }
  out.left = elements(now);
  return out.left > 0 && out.left <= elements(out.whole) / kTimesAsMany ? std::optional(out) : std::nullopt;
}

bool is_given(const Operator& one, const Sizes& sizes) {
  return std::any_of(one.inputs->shapes.begin(), one.inputs->shapes.end(),
                     [&](const Shape& shape) { return shape.sizes == sizes; });
}

// Is what it makes at a place made of what it is given at that place? Of a layer that means of each row. Not a sum of
// two that are both whole: what is learned beside the way past it is wanted everywhere.
bool is_in_place(const Operator& one, bool in_rows, const Sizes& whole) {
  const std::vector<Shape>& given = one.inputs->shapes;
  if (given.empty() || one.phase == Phase::optimizer || one.phase == Phase::zero_grad) return false;
  const bool casts = one.name == "aten::to" || one.name == "aten::_to_copy";
  if (is_elementwise(one.name) || casts) {
    return std::count_if(given.begin(), given.end(), [&](const Shape& shape) { return shape.sizes == whole; }) == 1;
  }
  const Sizes& first = given[0].sizes;
  if (!in_rows || whole.size() < 2) return false;
  if (one.name == "aten::layer_norm") {
    const std::vector<std::string>& values = one.inputs->values;
    return first == whole && values.size() > 1 && values[1] == "[" + std::to_string(whole.back()) + "]";
  }
  if (one.name != "aten::linear" || given.size() < 2 || given[1].sizes.size() != 2) return false;
  return first.size() == whole.size() && given[1].sizes.front() == whole.back() &&
         std::equal(first.begin(), first.end() - 1, whole.begin());
}

bool is_beside(const Operator& one) { return is_without_values(one.name) || (is_view(one.name) && !is_cut(one.name)); }

// Indices in an order by chance: how often so many were put in order on a rank, and how many slices were taken of
// those.
struct Drawn {
  std::int64_t orders = 0, slices = 0;
};
using Orders = std::map<std::pair<const Trace*, Sizes>, Drawn>;

bool makes_order(const Operator& one, const Sizes& whole) {
  return one.name == "aten::randperm" && whole.size() == 1 && one.inputs->number(0, 0) == whole[0];
}

Orders orders_of(const std::vector<Operator>& all) {
  Orders out;
  for (const Operator& one : all) {
    if (one.name == "aten::randperm") out[{one.trace, Sizes{one.inputs->number(0, 0)}}].orders++;
  }
  for (const Operator& one : all) {
    if (!is_cut(one.name) || one.inputs->shapes.empty()) continue;
    const auto made = out.find({one.trace, one.inputs->shapes[0].sizes});
    if (made != out.end()) made->second.slices++;
  }
  return out;
}

// A few of each order: of one that came once nobody knows whether it is gone through in steps to come.
bool is_drawn(const Orders& orders, const Operator& order, const Cut& cut) {
  constexpr std::int64_t kTimesAsManyDrawn = 32;  // of more, as many that differ may not be cheaper to draw
  const auto made = orders.find({order.trace, cut.whole});
  return made != orders.end() && made->second.orders > 1 && made->second.slices <= made->second.orders &&
         cut.left <= elements(cut.whole) / kTimesAsManyDrawn;
}

// Is an order used otherwise than by a slice? There may be other tensors of as many numbers, which are no indices.
bool takes_order(const Operator& one, const Sizes& whole) {
  if (is_cut(one.name)) return false;
  const std::vector<Shape>& given = one.inputs->shapes;
  const bool looks_up = one.name.starts_with("aten::index") || one.name == "aten::gather";  // in its first input
  for (std::size_t k = looks_up ? 1 : 0; k < given.size(); k++) {
    if (std::find(given[k].list.begin(), given[k].list.end(), whole) != given[k].list.end()) return true;
    const bool is_whole = k < one.inputs->types.size() && one.inputs->types[k].starts_with("long");
    if (is_whole && given[k].sizes == whole) return true;
  }
  return false;
}

// What was done to all of it right before it is cut, last first.
std::vector<std::size_t> chain_before(const std::vector<Operator>& all, const Cut& cut, std::size_t at,
                                      const Orders& orders) {
  std::vector<std::size_t> chain;
  for (std::size_t k = at; k-- > 0 && at - k <= kLongestChain && is_same_place(all[k], all[at]);) {
    if (is_beside(all[k])) {
      if (is_given(all[k], cut.whole)) return {};  // another look at it, which may be used
      continue;
    }
    if (makes_order(all[k], cut.whole)) {
      if (is_drawn(orders, all[k], cut)) chain.push_back(k);
      break;
    }
    if (!is_in_place(all[k], cut.in_rows, cut.whole)) break;
    chain.push_back(k);
    if (all[k].name == "aten::linear") break;  // before it another width is cut
  }
  // What is written into a tensor that was there before stays.
  while (!chain.empty() && all[chain.back()].name.ends_with('_')) chain.pop_back();
  return chain;
}

// Of the first input of such sizes; empty: not known.
std::string_view type_of(const Operator& one, const Sizes& sizes) {
  const std::vector<Shape>& given = one.inputs->shapes;
  for (std::size_t k = 0; k < std::min(given.size(), one.inputs->types.size()); k++) {
    if (given[k].sizes == sizes) return one.inputs->types[k];
  }
  return {};
}

// Is anything else given what the chain made, or another slice of it? The next turn of a loop goes through all of it
// anew.
bool is_used_whole(const std::vector<Operator>& all, const Cut& cut, std::size_t at,
                   const std::vector<std::size_t>& chain) {
  const bool is_order = makes_order(all[chain.back()], cut.whole);
  for (std::size_t k = cut.last + 1; k < all.size() && k - cut.last < kFarthest; k++) {
    if (!is_same_place(all[k], all[cut.last])) break;
    if (is_order ? !takes_order(all[k], cut.whole) : !is_given(all[k], cut.whole)) continue;
    if (is_order || chain.size() < 2) return true;
    // What is given in the type that was cut may be what the chain made, as by a layer for the next one.
    const std::string_view type = type_of(all[k], cut.whole);
    if (!type.empty() && type == type_of(all[at], cut.whole)) return true;
    auto next = chain.rbegin();
    for (; k < all.size() && is_same_place(all[k], all[cut.last]); k++) {
      if (is_beside(all[k])) continue;
      if (next == chain.rend()) break;
      if (all[k].name != all[*next].name) return true;
      ++next;
    }
    return k == all.size() || !is_same_place(all[k], all[cut.last]) || !is_cut(all[k].name) ||
           !is_given(all[k], cut.whole);
  }
  return false;
}

}  // namespace

Cause work_cut_off_cause() {
  return {
      "work_cut_off", "Work that is cut off", [](const Case& about, std::vector<Diagnosis>& out) {
        const std::vector<Operator>& all = forward_operators(about);
        const Passes& pass = passes(about);
        Gathered needless(about);
        const Orders orders = orders_of(all);
        std::int64_t most = 0, left = 0, drawn_ns = 0;
        for (std::size_t i = 1; i < all.size(); i++) {
          const std::optional<Cut> cut = cut_at(all, i);
          if (!cut) continue;
          const std::vector<std::size_t> chain = chain_before(all, *cut, i, orders);
          if (!chain.empty() && !is_used_whole(all, *cut, i, chain)) {
            const double part = static_cast<double>(cut->left) / static_cast<double>(elements(cut->whole));
            for (const std::size_t at : chain) {
              const Operator& one = all[at];
              const std::int64_t call_ns = usual_call_ns(about, *one.trace);
              const std::vector<std::uint32_t>& nodes = pass.nodes(*one.trace, one.slice);
              needless.add(nodes, one.name, part, kMostMore * part, call_ns);
              if (makes_order(one, cut->whole)) {
                for (const std::uint32_t node : nodes) drawn_ns += about.on_path(node);
              }
              needless.add(pass.backward_nodes(*one.trace, one.slice), one.name, part, kMostMore * part, call_ns);
            }
            if (elements(cut->whole) > most) most = elements(cut->whole), left = cut->left;
          }
          i = cut->last;
        }
        needless.add_outputs();
        if (!needless.worth_saying()) return;
        Diagnosis found = needless.diagnosis(
            {.cause = "model",
             .sentence = "All of a tensor is worked on, and most of it is cut off right behind",
             .next = 2 * drawn_ns > needless.time_ns()
                         ? "Draw as many as are wanted: torch.randint(n, (k,)) in place of torch.randperm(n)[:k], or "
                           "random.sample(range(n), k) where none may come twice"
                         : "Cut first, and work on what is left: crop pictures before they are changed, take "
                           "x[:, -1] before the last layer",
             .doubt = "that nothing else needs what is cut off is inferred from sizes"});
        found.finding.evidence.push_back({.text = "Elements worked on", .value = most, .unit = Unit::count});
        found.finding.evidence.push_back({.text = "Left", .value = left, .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
