#include "diagnose/look_ups.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose {
namespace {

// Of a trace, by outermost operators.
struct Indexed {
  std::unordered_map<SliceId, Sizes> added;  // of the backward pass: the sizes of the rows that it adds up
  std::unordered_set<SliceId> by_mask;
};

Indexed indexed_in(const Case& about, const Trace& trace) {
  Indexed out;
  for (const SliceId slice : trace.ops.slice) {
    const std::string_view name = trace.name(slice);
    if (name == "aten::nonzero") {
      out.by_mask.insert(about.outermost(trace, slice));
    } else if (name == "aten::_index_put_impl_") {
      const std::vector<Shape>& shapes = inputs(about).of(trace, slice).shapes;
      if (shapes.size() > 2) out.added.try_emplace(about.outermost(trace, slice), shapes[2].sizes);
    }
  }
  return out;
}

// How many rows of the table `made` are; 0: it is something else, as of an index for each dimension, or of the sizes of
// the table itself, as of its columns in another order.
std::int64_t rows_in(const Sizes& table, const Sizes& made) {
  if (made == table) return 0;
  const bool rows = made.size() == table.size() && std::equal(table.begin() + 1, table.end(), made.begin() + 1);
  return rows ? made.front() : 0;
}

std::vector<LookUp> found_in(const Case& about) {
  const std::vector<Operator>& all = forward_operators(about);
  const Passes& pass = passes(about);
  std::unordered_map<const Trace*, Indexed> known;
  std::vector<LookUp> out;
  for (std::size_t i = 0; i < all.size(); i++) {
    const std::vector<Shape>& shapes = all[i].inputs->shapes;
    if (shapes.empty() || shapes[0].sizes.size() < 2 || shapes[0].sizes.front() < 1) continue;
    LookUp one{.at = i, .table = shapes[0].sizes};
    if (all[i].name == "aten::embedding" && shapes.size() > 1) {
      one.rows = elements(shapes[1].sizes);
    } else if (all[i].name == "aten::index_select" && shapes.size() > 2 && all[i].inputs->number(1, -1) == 0) {
      one.rows = elements(shapes[2].sizes);
    } else if (all[i].name == "aten::index") {
      const auto [at, fresh] = known.try_emplace(all[i].trace);
      if (fresh) at->second = indexed_in(about, *all[i].trace);
      for (const SliceId back : pass.backward(*all[i].trace, all[i].slice)) {
        const auto added = at->second.added.find(back);
        if (added == at->second.added.end()) continue;
        one.rows = rows_in(one.table, added->second);
        one.back.push_back(back);
      }
      one.by_mask = at->second.by_mask.contains(all[i].slice);
    }
    if (one.rows > 0) out.push_back(std::move(one));
  }
  return out;
}

struct Found {
  std::vector<LookUp> all;
};

}  // namespace

const std::vector<LookUp>& look_ups(const Case& about) {
  return about.shared<Found>([](const Case& of) { return Found{found_in(of)}; }).all;
}

}  // namespace stepscope::diagnose
