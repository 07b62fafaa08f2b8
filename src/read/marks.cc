// Reader of the marks that each rank of `stepscope run` keeps all the time (telemetry/HOST_PID.ring): every step and
// phase of a job as a trace with one lane, for what no trace was recorded of, and for the whole of a long job.
#include <string>

#include "read/reader.h"
#include "read/trace_rows.h"
#include "run/ring.h"

namespace stepscope::read {
namespace {

bool recognizes(std::string_view head) { return head.starts_with(run::kRingMagic); }

// Phases are named as those of a recording, steps as torch.profiler marks them.
std::string name_of(const run::Mark& mark) {
  if (mark.kind == run::MarkKind::step) return "ProfilerStep#" + std::to_string(mark.step);
  return std::string(run::phase_name(mark.phase));
}

void take_identity(const run::Ring& ring, Trace& trace) {
  if (ring.rank_source == "single process") return;
  trace.rank.rank = ring.rank;
  trace.rank.world_size = ring.world_size;
  trace.rank.source = RankSource::distributed_info;
}

Result<std::vector<Trace>> read_file(const std::string& path, const ReadOptions&) {
  const Result<run::Ring> ring = run::read_ring(path);
  if (!ring) return fail(ring.error());
  TraceRows rows(path);
  rows.trace.source = {.path = path, .format = "marks", .writer = "stepscope"};
  rows.trace.clock_base_ns = 0;  // times are Unix time
  rows.trace.source.file_bytes = rows.trace.source.text_bytes = ring->file_bytes;
  rows.trace.source.events = ring->marks.size();
  take_identity(*ring, rows.trace);
  const TrackId lane = rows.lane(ring->host + " " + std::to_string(ring->pid), "steps");
  const CategoryId category = rows.category("user_annotation");
  for (const run::Mark& mark : ring->marks) {
    if (mark.kind == run::MarkKind::part) continue;
    rows.add_slice(mark.place, mark.start_ns, mark.start_ns + mark.dur_ns, rows.text(name_of(mark)), lane, category);
  }
  if (ring->dropped > 0) {
    rows.note("marks_overwritten", Severity::info,
              "the record of steps holds the newest " + std::to_string(ring->marks.size()) +
                  " marks; older ones were " + "overwritten");
  }
  if (rows.trace.slices.size() == 0) {
    rows.note("no_marks", Severity::info, "the process ended no step", "Look at the output of the job");
  }
  rows.note_repaired_texts();
  std::vector<Trace> traces;
  traces.push_back(std::move(rows.trace));
  return traces;
}

Result<std::vector<std::string>> no_text(const Trace& trace, std::span<const std::uint64_t>) {
  return fail({ErrorKind::unsupported, "marks are no text and have no arguments", trace.source.path, std::nullopt,
               "Use the columns of the table slices"});
}

}  // namespace

Reader marks_reader() {
  return {"marks", "Marks of all steps and phases that stepscope run keeps (.ring)", recognizes, read_file, no_text};
}

}  // namespace stepscope::read
