// Tables of which a step looks up a few rows and has the gradient as large as all of them: it is cleared, added to and
// taken by the optimizer as a whole.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
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
#include "model/lookup.h"
#include "model/windows.h"

namespace stepscope::diagnose::causes {
namespace {

// A gradient of rows costs several times as much for each: indices are sorted, rows added up one by one.
constexpr double kMostTimesPerRow = 10;
constexpr std::int64_t kLargeElements = 1 << 20;  // of a table; smaller ones stay in caches

// aten::embedding_dense_backward(gradient [.., width], indices, rows, …).
struct Table {
  std::int64_t rows = 0, width = 0, looked_up = 0;
};

Table table_of(const OperatorInputs& given) {
  if (given.shapes.size() < 2 || given.shapes[0].sizes.empty()) return {};
  return {
      .rows = given.number(2, 0), .width = given.shapes[0].sizes.back(), .looked_up = elements(given.shapes[1].sizes)};
}

using Key = std::pair<std::int64_t, std::int64_t>;  // rows and width

struct Use {
  std::int64_t looked_up = 0, calls = 0;
};

// Of a trace: what is looked up in each step of the tables whose gradients have all rows.
struct Tables {
  std::map<StepId, std::map<Key, Use>> used;
  std::map<SliceId, Key> made_by;  // outermost operators of the backward pass
  std::set<Key> tied;              // that a product gives a gradient as well, which has all rows anyway
};

Tables tables_of(const Case& about, const Trace& trace) {
  Tables out;
  for (const SliceId slice : trace.ops.slice) {
    const std::string_view name = trace.name(slice);
    const SliceId outermost = about.outermost(trace, slice);
    if (outermost == SliceId::none || !is_backward(trace.name(outermost))) continue;
    const OperatorInputs& given = inputs(about).of(trace, slice);
    if (const Sizes made = given.product(); is_product(name) && !made.empty()) {
      out.tied.insert({{made[0], made[1]}, {made[1], made[0]}});
    }
    if (name != "aten::embedding_dense_backward") continue;
    const Table table = table_of(given);
    if (elements({table.rows, table.width}) < kLargeElements) continue;
    const Key key{table.rows, table.width};
    Use& use = out.used[trace.step_at(trace.slices.start_ns[slice])][key];
    use.looked_up = std::min(use.looked_up + std::min(table.looked_up, table.rows), table.rows);
    use.calls++;
    out.made_by[outermost] = key;
  }
  for (auto& [step, tables] : out.used) {
    std::erase_if(tables, [&](const auto& one) {
      const auto& [key, use] = one;
      return out.tied.contains(key) ||
             kMostTimesPerRow * static_cast<double>(use.looked_up) >= static_cast<double>(key.first);
    });
  }
  return out;
}

// How much of what the optimizer goes through is tables of that size, each of which is looked up once or more.
double part_of_parameters(const Trace& trace, const Key& key, std::int64_t calls) {
  const std::int64_t table = elements({key.first, key.second});
  double learned = 0, all = 0;
  std::int64_t such = 0;
  for (const ModuleSize& size : trace.module_sizes) {
    learned += static_cast<double>(size.learned);
    all += static_cast<double>(size.parameters);
    such += size.parameters == table ? 1 : 0;
  }
  const double of = learned > 0 ? learned : all;
  return of > 0 ? std::min(1.0, static_cast<double>(table) * static_cast<double>(std::min(such, calls)) / of) : 0;
}

// Does a row without a gradient stay as it is in this optimizer? Not where it has momentum, or takes something off all
// weights.
bool keeps_rows(const Case& about) {
  if (optimizer_class(about.trace) == "Adagrad") return true;
  if (optimizer_class(about.trace) != "SGD") return false;
  for (const Trace& trace : timelines(about.run)) {
    for (const SliceId slice : trace.ops.slice) {
      if (static_cast<Phase>(trace.slices.phase[slice]) != Phase::optimizer) continue;
      const std::string_view name = trace.name(slice);
      if (name == "aten::_fused_sgd_") {
        const std::vector<std::string>& values = inputs(about).of(trace, slice).values;  // 3: decay, 4: momentum
        for (std::size_t k = 3; k < std::min<std::size_t>(values.size(), 5); k++) {
          if (std::strtod(values[k].c_str(), nullptr) != 0) return false;
        }
      } else if (name.find("mul_") != name.npos) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

Cause dense_gradients_cause() {
  return {
      "dense_gradients", "Gradients of whole tables", [](const Case& about, std::vector<Diagnosis>& out) {
        std::map<const Trace*, Tables> known;
        for (const Trace& trace : timelines(about.run)) known.try_emplace(&trace, tables_of(about, trace));
        Gathered whole(about);
        Key largest{0, 0};
        std::int64_t looked_up = 0;
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          const auto of = known.find(work.trace);
          if (of == known.end() || work.operation == SliceId::none) return;
          const Tables& tables = of->second;
          const auto step = tables.used.find(work.trace->step_at(work.start_ns));
          if (step == tables.used.end() || step->second.empty()) return;
          const auto left = [](const auto& table) {
            return static_cast<double>(table.second.looked_up) / static_cast<double>(table.first.first);
          };
          if (const auto made = tables.made_by.find(work.operation); made != tables.made_by.end()) {
            const auto table = step->second.find(made->second);
            if (table == step->second.end()) return;
            if (elements({table->first.first, table->first.second}) > elements({largest.first, largest.second})) {
              largest = table->first, looked_up = table->second.looked_up;
            }
            whole.add(node, work, work.trace->name(work.operation), left(*table), kMostTimesPerRow * left(*table));
            return;
          }
          // The optimizer goes through all parameters: as much of its time is the tables' as they have of these.
          if (static_cast<Phase>(work.trace->slices.phase[work.operation]) != Phase::optimizer) return;
          double least = 1, most = 1;
          for (const auto& table : step->second) {
            const double part = part_of_parameters(*work.trace, table.first, table.second.calls);
            least -= part * (1 - left(table));
            most -= part * (1 - kMostTimesPerRow * left(table));
          }
          if (least >= 1) return;
          whole.add(node, work, work.trace->name(work.operation), std::max(0.0, least), std::clamp(most, 0.0, 1.0));
        });
        if (looked_up == 0 || !whole.worth_saying()) return;
        Diagnosis found = whole.diagnosis(
            {.cause = "memory",
             .sentence = "The gradient of a table is as large as the table, of which each step looks up a few rows",
             .next = "Make it nn.Embedding(…, sparse=True), with an optimizer of its own that goes through these rows "
                     "alone: torch.optim.SparseAdam, or SGD without momentum",
             .doubt = "how much of the optimizer's time is the table's is by its share of the parameters"});
        found.is_offer = !keeps_rows(about);
        found.finding.evidence.push_back({.text = "Rows of the table", .value = largest.first, .unit = Unit::count});
        found.finding.evidence.push_back(
            {.text = "Rows looked up in a step, at most", .value = looked_up, .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
