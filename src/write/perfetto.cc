// perfetto: a trace of TracePackets for ui.perfetto.dev and its trace processor. Gzip where the name ends in ".gz".
//
// Each rank is a sequence of packets with processes, threads and streams of its own; slices are pairs of begin and end,
// their columns and original arguments debug annotations. Perfetto sorts packets itself, so nothing is held back here:
// memory is what the plan of the lanes takes, and the text of one rank's file. The reader of this format
// (src/read/perfetto.cc) makes the same model from it; execution graphs are not written.
#include <algorithm>
#include <limits>

#include "formats/out_file.h"
#include "write/perfetto/rank_writer.h"
#include "write/writer.h"

namespace stepscope::write {
namespace {

using namespace perfetto;

// INT64_MAX: nothing happened.
std::int64_t first_time(const Trace& trace) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const auto* times : {&trace.slices.start_ns, &trace.memory.time_ns, &trace.flows.time_ns,
                            &trace.instants.time_ns, &trace.counters.time_ns}) {
    for (const std::int64_t time_ns : *times) first = std::min(first, time_ns);
  }
  return first;
}

// Perfetto's times are not negative: where one would be, all are moved.
std::vector<Place> places(const Run& run) {
  std::vector<Place> all;
  std::int64_t earliest = 0;
  for (std::size_t i = 0; i < run.traces.size(); i++) {
    const std::int64_t first = first_time(run.traces[i]);
    const std::int64_t offset_ns = run.traces.size() > 1 ? run.traces[i].clock.offset_ns : 0;
    const bool nothing = first == std::numeric_limits<std::int64_t>::max();
    all.push_back({i, run.traces.size(), offset_ns, nothing ? -offset_ns : first});
    earliest = std::min(earliest, all.back().first_ns + offset_ns);
  }
  for (Place& place : all) place.offset_ns -= earliest;
  return all;
}

// When the file's clock showed what, in Unix time: the viewer can then show the time of day.
void add_clock(formats::OutFile& file, const Trace& trace, const Place& place) {
  if (trace.clock_base_ns == kAbsent || place.first_ns + trace.clock_base_ns < 0) return;
  formats::ProtoWriter out;
  const auto clock = [&](std::uint64_t id, std::int64_t time_ns) {
    out.begin(wire::snapshot::clocks);
    out.number(wire::snapshot::id, id);
    out.number(wire::snapshot::time, static_cast<std::uint64_t>(time_ns));
    out.end();
  };
  out.begin(wire::trace::packet);
  out.number(wire::packet::sequence, place.ranks + 1);
  out.begin(wire::packet::clock_snapshot);
  clock(wire::snapshot::boottime, place.first_ns + place.offset_ns);
  clock(wire::snapshot::realtime, place.first_ns + trace.clock_base_ns);
  out.end();
  out.end();
  file.add(out.bytes());
}

Result<void> write_perfetto(const Run& run, const std::string& out, const WriteOptions& options) {
  auto file = formats::OutFile::create(out);
  if (!file) return fail(file.error());
  const std::vector<Place> all = places(run);
  add_clock(*file, run.traces[0], all[0]);
  Numbers numbers;
  for (std::size_t i = 0; i < run.traces.size(); i++) {
    const RankNames names{run.traces.size() > 1, run.traces[i].rank.rank, options};
    RankWriter(run.traces[i], all[i], *file, numbers, names).write();
  }
  return file->finish();
}

}  // namespace

Writer perfetto_writer() {
  return {
      "perfetto",
      "a Perfetto trace (.pftrace) for ui.perfetto.dev, all ranks in one, telemetry as counters; not execution graphs",
      false, true, write_perfetto};
}

}  // namespace stepscope::write
