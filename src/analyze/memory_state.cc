// memory_state: what fills the memory of the model, by category and module, as `stepscope run --memory` measured it.
//
// Nothing of it comes from traces: a run that holds only states of memory has this answer. Bytes are of storages, each
// counted once; what the categories do not hold (results on their way, workspaces, other processes) is in the table of
// the allocator, which only devices have.
#include <algorithm>

#include "analyze/analysis.h"
#include "analyze/memory_state/findings.h"
#include "analyze/memory_state/tables.h"
#include "model/answer_parts.h"
#include "model/curves.h"

namespace stepscope::analyze {
namespace {

using memory_states::kMeasured;

constexpr std::string_view kNotMeasured =
    "The state of memory was not measured. Measure it: stepscope run --memory -- …, or SimpleMemoryProfiler of "
    "stepscope.memory in the program.";

const MemoryState* highest_peak(const Run& run) {
  const MemoryState* highest = nullptr;
  for (const MemoryState& state : run.memory_states) {
    if (state.peak && (highest == nullptr || state.peak->bytes() > highest->peak->bytes())) highest = &state;
  }
  return highest;
}

std::int64_t kept(const MemoryPoint& point) {
  return point.bytes[static_cast<std::size_t>(MemoryCategory::activation)] +
         point.bytes[static_cast<std::size_t>(MemoryCategory::input)];
}

std::string snake(std::string_view words) {
  std::string name(words);
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

void add_peak_scalars(Answer& answer, const MemoryState* highest) {
  const auto add = [&](std::string_view name, Value value, Unit unit, std::string_view meaning) {
    add_scalar(answer, name, highest ? std::move(value) : Value(), unit, highest ? meaning : kNotMeasured);
  };
  add("peak_bytes", highest ? Value(highest->peak->bytes()) : Value(), Unit::bytes,
      "Most that all categories held at once, of the rank where that is most");
  add("peak_rank", highest ? Value(highest->rank) : Value(), Unit::none, "That rank");
  for (const MemoryCategory category : kMeasured) {
    if (category == MemoryCategory::unknown) continue;
    const MemoryTree* tree = highest ? highest->peak->tree(category) : nullptr;
    add("peak_" + snake(to_string(category)) + "_bytes", tree ? tree->bytes() : std::int64_t{0}, Unit::bytes,
        "Of it: " + std::string(to_string(category)));
  }
}

// Of the same rank; on a CPU unknown, and why.
void add_allocator_scalars(Answer& answer, const MemoryState* highest) {
  const AllocatorFigures* last = nullptr;
  if (highest) {
    for (const MemoryPoint& point : highest->points) {
      if (point.allocator) last = &*point.allocator;
    }
  }
  const std::string why = !highest                            ? std::string(kNotMeasured)
                          : highest->allocator_reason.empty() ? "n/a: the file has no figures of the allocator"
                                                              : highest->allocator_reason;
  const auto add = [&](std::string_view name, std::optional<std::int64_t> value, std::string_view meaning) {
    add_scalar(answer, name, to_value(value), Unit::bytes, value ? meaning : std::string_view(why));
  };
  using Number = std::optional<std::int64_t>;
  add("reserved_bytes", last ? last->reserved_bytes : Number(), "What torch had of the device at the end");
  add("rounding_bytes", last ? last->rounding_bytes : Number(), "Lost to the allocator's sizes of blocks then");
  add("inactive_split_bytes", last ? last->inactive_split_bytes : Number(), "Lost to fragmentation then");
  add("non_torch_bytes", last ? last->non_torch_bytes : Number(),
      "In use on the device beside torch then: contexts, NCCL, graphs, other processes");
  add_scalar(answer, "workspace_bytes", Value(), Unit::bytes,
             last ? "n/a: torch does not tell workspaces of libraries apart; a snapshot of --memory-history does"
                  : std::string_view(why));
}

// A line for each category over the moments that were measured.
void add_series(const Run& run, Answer& answer) {
  for (const MemoryState& state : run.memory_states) {
    for (const MemoryCategory category : kMeasured) {
      const auto at = static_cast<std::size_t>(category);
      Curve curve;
      bool any = false;
      for (const MemoryPoint& point : state.points) {
        const std::int64_t when = point.moment.unix_ns.value_or(0);
        if (when <= 0 || (!curve.t_ns.empty() && when < curve.t_ns.back())) continue;
        curve.add(when, static_cast<double>(point.bytes[at]));
        any |= point.bytes[at] > 0;
      }
      if (!any) continue;
      const std::string name(to_string(category));
      Series series = thinned(snake(name) + "_rank" + std::to_string(state.rank), Unit::bytes, curve);
      series.metric = "memory";
      series.target = name;
      series.ranks = {state.rank};
      answer.series.push_back(std::move(series));
    }
  }
}

void add_notes(const Run& run, Answer& answer) {
  for (const MemoryState& state : run.memory_states) {
    const std::string rank = run.memory_states.size() > 1 ? "Rank " + std::to_string(state.rank) + ": " : "";
    for (const std::string& note : state.notes) answer.notes.push_back(rank + note);
    if (!state.complete) {
      answer.notes.push_back(rank + "Measured are " + std::to_string(state.steps_done) + " of the " +
                             std::to_string(state.steps_wanted) + " steps that were asked for.");
    }
    if (state.steps_left_out + state.points_left_out > 0) {
      answer.notes.push_back(rank + "Of a long measurement " + std::to_string(state.steps_left_out) + " steps and " +
                             std::to_string(state.points_left_out) + " moments in the middle were not kept.");
    }
  }
}

Result<Answer> run_memory_state(const Run& run, const AnalyzeOptions& options) {
  Answer answer;
  const MemoryState* highest = highest_peak(run);
  const bool known = !run.memory_states.empty();
  add_scalar(answer, "measured_rank_count", known ? count(run.memory_states.size()) : Value(), Unit::count,
             known ? "Ranks whose memory was measured" : kNotMeasured);
  add_peak_scalars(answer, highest);
  std::int64_t most_kept = 0;
  for (const MemoryState& state : run.memory_states) {
    for (const MemoryPoint& point : state.points) most_kept = std::max(most_kept, kept(point));
  }
  add_scalar(
      answer, "kept_bytes", value_if(known, most_kept), Unit::bytes,
      known ? "Most that autograd kept at the end of a pass: activations, and inputs of the model" : kNotMeasured);
  add_allocator_scalars(answer, highest);
  answer.tables = {memory_states::categories_table(run), memory_states::steps_table(run),
                   memory_states::allocator_table(run), memory_states::devices_table(run)};
  memory_states::add_trees(run, answer);
  add_series(run, answer);
  memory_states::find_causes(run, answer);
  add_notes(run, answer);
  for (Table& table : answer.tables) limit_rows(answer, table, options.max_rows, "later rows of " + table.name);
  if (!known) answer.notes.push_back(std::string(kNotMeasured));
  return answer;
}

}  // namespace

Analysis memory_state_analysis() {
  return {"memory_state",
          "What fills the memory of the model: parameters, gradients, optimizer state, activations, by module?",
          run_memory_state};
}

}  // namespace stepscope::analyze
