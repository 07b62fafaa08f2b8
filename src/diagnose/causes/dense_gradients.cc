// Tables of which a step looks up a few rows and has the gradient as large as all of them: it is cleared, added to and
// taken by the optimizer as a whole.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
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

std::int64_t number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

Table table_of(const OperatorInputs& given) {
  if (given.shapes.size() < 2 || given.values.size() < 3 || given.shapes[0].sizes.empty()) return {};
  return {.rows = number(given.values[2]),
          .width = given.shapes[0].sizes.back(),
          .looked_up = elements(given.shapes[1].sizes)};
}

}  // namespace

Cause dense_gradients_cause() {
  return {
      "dense_gradients", "Gradients of whole tables", [](const Case& about, std::vector<Diagnosis>& out) {
        struct Tables {
          std::map<SliceId, double> left;     // by outermost operator: of its work
          std::map<StepId, double> elements;  // of tables, in each step
          double rows_left = 0;               // of a step's tables: the largest part
        };
        std::map<const Trace*, Tables> known;
        Table largest;
        for (const Trace& trace : timelines(about.run)) {
          for (const SliceId slice : trace.ops.slice) {
            if (trace.name(slice) != "aten::embedding_dense_backward") continue;
            const Table table = table_of(inputs(about).of(trace, slice));
            const std::int64_t all = elements({table.rows, table.width});
            const double left = kMostTimesPerRow * static_cast<double>(table.looked_up);
            if (all < kLargeElements || left >= static_cast<double>(table.rows)) continue;
            Tables& of = known[&trace];
            of.left[about.outermost(trace, slice)] = left / static_cast<double>(table.rows);
            of.elements[trace.step_at(trace.slices.start_ns[slice])] += static_cast<double>(all);
            of.rows_left = std::max(of.rows_left, left / static_cast<double>(table.rows));
            if (all > elements({largest.rows, largest.width})) largest = table;
          }
        }
        if (known.empty()) return;
        Gathered whole(about);
        for_each_work(about, [&](std::uint32_t node, const Work& work) {
          const auto of = known.find(work.trace);
          if (of == known.end() || work.operation == SliceId::none) return;
          const Tables& tables = of->second;
          if (const auto left = tables.left.find(work.operation); left != tables.left.end()) {
            return whole.add(node, work, work.trace->name(work.operation), left->second / kMostTimesPerRow,
                             left->second);
          }
          // The optimizer goes through all parameters: as much of its time is the tables' as they have of these.
          const auto phase = static_cast<Phase>(work.trace->slices.phase[work.operation]);
          const auto in_step = tables.elements.find(work.trace->step_at(work.start_ns));
          if (phase != Phase::optimizer || in_step == tables.elements.end()) return;
          double all = 0;
          for (const ModuleSize& size : work.trace->module_sizes) all += static_cast<double>(size.parameters);
          const double part = all > 0 ? std::min(1.0, in_step->second / all) : 0;
          if (part == 0) return;
          whole.add(node, work, work.trace->name(work.operation), 1 - part * (1 - tables.rows_left / kMostTimesPerRow),
                    1 - part * (1 - tables.rows_left));
        });
        if (!whole.worth_saying()) return;
        Diagnosis found = whole.diagnosis(
            {.cause = "memory",
             .sentence = "The gradient of a table is as large as the table, of which each step looks up a few rows",
             .next = "Make it nn.Embedding(…, sparse=True), with an optimizer of its own that goes through these rows "
                     "alone: torch.optim.SparseAdam, or SGD without momentum",
             .doubt = "how much of the optimizer's time is the table's is by its share of the parameters, and with "
                      "momentum, as Adam has it, rows that are not looked up then stay as they are"});
        const std::string_view optimizer = optimizer_class(about.trace);
        found.is_offer = optimizer != "SGD" && optimizer != "Adagrad";
        found.finding.evidence.push_back({.text = "Rows of the table", .value = largest.rows, .unit = Unit::count});
        found.finding.evidence.push_back(
            {.text = "Rows looked up in a step", .value = largest.looked_up, .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
