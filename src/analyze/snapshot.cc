// snapshot: what fills the memory of the devices, from torch's own record of it (Run::snapshots): the peak and every
// point where memory ran out by what it is for and who allocated it, free memory in pieces and what stands between
// them, what grows, and the rank that stands out. Memory timelines of the profiler are shown by category beside it.
#include <algorithm>
#include <string>

#include "analyze/snapshot/parts.h"
#include "model/answer_parts.h"

namespace stepscope::analyze {
namespace {

constexpr std::size_t kStacks = 100;  // of a moment, where no other limit is asked for
constexpr std::string_view kNoSnapshots =
    "No memory snapshot was opened. Record them with stepscope run --memory-history, or in the job with "
    "torch.cuda.memory._record_memory_history() and _dump_snapshot(\"snapshot.pickle\").";

// Snapshots with neither events nor segments.
void say_what_is_empty(const Run& run, Answer& answer) {
  const auto empty = std::count_if(run.snapshots.begin(), run.snapshots.end(), [](const Trace& trace) {
    return trace.snapshot_history != nullptr && trace.snapshot_history->devices.empty();
  });
  if (empty == 0) return;
  answer.notes.push_back(
      "Nothing was recorded" +
      (run.snapshots.size() > 1
           ? " in " + std::to_string(empty) + " of " + std::to_string(run.snapshots.size()) + " snapshots"
           : std::string()) +
      ": no events, and no memory that the allocator held. Call torch.cuda.memory._record_memory_history() "
      "before the model is made and _dump_snapshot() while it lives, in the process that uses the GPU, or record with "
      "stepscope run --memory-history.");
}

Result<Answer> run_snapshot(const Run& run, const AnalyzeOptions& options) {
  using namespace device_memory;
  Answer answer;
  const std::vector<snapshot::View> views = snapshot::views_of(run);
  Parts parts{run, views, options.max_rows > 0 ? options.max_rows : kStacks, answer};
  add_scalar(answer, "snapshot_count", run.snapshots.empty() ? Value() : count(run.snapshots.size()), Unit::count,
             run.snapshots.empty() ? kNoSnapshots : "Memory snapshots and memory timelines that were opened");
  if (run.snapshots.empty()) {
    answer.notes.push_back(std::string(kNoSnapshots));
    return answer;
  }
  say_what_is_empty(run, answer);
  if (!views.empty()) {
    add_devices(parts);
    add_ooms(parts);
    add_fragmentation(parts);
    add_growth(parts);
    add_ranks(parts);
    add_segments(parts);
  }
  add_timelines(parts);
  if (!views.empty()) answer.tables.push_back(parts.told.table());
  return answer;
}

}  // namespace

Analysis snapshot_analysis() {
  return {"snapshot", "What fills the memory of the devices, when, and why did it run out?", run_snapshot};
}

}  // namespace stepscope::analyze
