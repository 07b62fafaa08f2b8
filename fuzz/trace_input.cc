#include "trace_input.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace stepscope::fuzz {

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

MemoryFile::MemoryFile(const unsigned char* data, std::size_t size) : fd_(memfd_create("trace", MFD_CLOEXEC)) {
  must(fd_ >= 0 && write(fd_, data, size) == static_cast<ssize_t>(size), "a file in memory");
  path_ = "/proc/self/fd/" + std::to_string(fd_);
}
MemoryFile::~MemoryFile() { close(fd_); }

Result<Trace> read_trace(const std::string& path, const read::ReadOptions& options) {
  Result<std::vector<Trace>> traces = read::reader_named("chrome_trace")->read(path, options);
  if (!traces) return fail(traces.error());
  return std::move(traces->front());
}

namespace {

template <class... Columns>
void same_rows(std::size_t rows, const char* what, const Columns&... columns) {
  must(((columns.size() == rows) && ...), what);
}

template <class Column, class Id>
void ids_below(const Column& column, std::size_t limit, Id none, const char* what) {
  for (std::size_t row = 0; row < column.size(); row++) {
    must(column[row] == none || static_cast<std::size_t>(column[row]) < limit, what);
  }
}

void check_strings(const Trace& t) {
  const auto known = [&](const auto& column, const char* what) {
    ids_below(column, t.strings.size(), StringId::none, what);
  };
  known(t.slices.name, "slice names");
  known(t.ops.input_dims, "input dims");
  known(t.ops.input_types, "input types");
  known(t.ops.concrete_inputs, "concrete inputs");
  known(t.ops.call_stack, "call stacks");
  known(t.collectives.kind, "collective kinds");
  known(t.collectives.dtype, "collective types");
  known(t.collectives.group_name, "group names");
  known(t.collectives.group_ranks, "group ranks");
  known(t.instants.name, "instant names");
  known(t.counters.name, "counter names");
  known(t.counters.key, "counter keys");
  for (const Track& track : t.tracks) {
    for (const StringId id : {track.process, track.thread, track.process_name, track.thread_name}) {
      must(id == StringId::none || static_cast<std::size_t>(id) < t.strings.size(), "track texts");
    }
  }
}

void check_slice_ids(const Trace& t) {
  const auto ascending = [&](const Column<SliceId>& column, const char* what) {
    for (std::size_t row = 0; row < column.size(); row++) {
      must(static_cast<std::size_t>(column[row]) < t.slices.size(), what);
      must(row == 0 || column[row - 1] < column[row], what);
    }
  };
  ascending(t.ops.slice, "ops by slice");
  ascending(t.launches.slice, "launches by slice");
  ascending(t.device.slice, "device rows by slice");
  ascending(t.collectives.slice, "collectives by slice");
}

void check_rows(const Trace& t) {
  const Slices& s = t.slices;
  same_rows(s.size(), "slices", s.dur_ns, s.name, s.track, s.category, s.place);
  same_rows(t.ops.size(), "ops", t.ops.external_id, t.ops.record_function_id, t.ops.sequence, t.ops.fwd_thread,
            t.ops.input_dims, t.ops.input_types, t.ops.concrete_inputs, t.ops.call_stack, t.ops.stream);
  same_rows(t.launches.size(), "launches", t.launches.correlation, t.launches.external_id);
  const DeviceRows& d = t.device;
  same_rows(d.size(), "device", d.correlation, d.external_id, d.device, d.stream, d.registers, d.shared_bytes,
            d.blocks_per_sm, d.warps_per_sm, d.occupancy_percent, d.bytes, d.wait_stream, d.wait_correlation);
  for (int k = 0; k < 3; k++) same_rows(d.size(), "launch shapes", d.grid[k], d.block[k]);
  const Collectives& c = t.collectives;
  same_rows(c.size(), "collectives", c.kind, c.dtype, c.in_elements, c.out_elements, c.group_size, c.group_name,
            c.group_ranks, c.sequence);
  const MemoryEvents& m = t.memory;
  same_rows(m.size(), "memory", m.track, m.bytes, m.address, m.total_allocated, m.total_reserved, m.device_type,
            m.device_index);
  same_rows(t.flows.size(), "flows", t.flows.id, t.flows.track, t.flows.category, t.flows.phase);
  same_rows(t.instants.size(), "instants", t.instants.name, t.instants.track, t.instants.category, t.instants.place);
  same_rows(t.counters.size(), "counters", t.counters.name, t.counters.key, t.counters.track, t.counters.value);
}

}  // namespace

void check_trace(const Trace& t) {
  check_rows(t);
  check_strings(t);
  check_slice_ids(t);
  const Slices& s = t.slices;
  for (const auto* tracks : {&s.track, &t.memory.track, &t.flows.track, &t.instants.track, &t.counters.track}) {
    for (const TrackId id : *tracks) must(static_cast<std::size_t>(id) < t.tracks.size(), "tracks");
  }
  for (const auto* categories : {&s.category, &t.flows.category, &t.instants.category}) {
    ids_below(*categories, t.categories.size(), CategoryId::none, "categories");
  }
  const auto& blocks = t.source.blocks;
  std::size_t block = 0;
  for (std::size_t row = 0; row < s.size(); row++) {
    must(s.dur_ns[row] >= 0, "durations");
    must(s.start_ns[row] <= INT64_MAX - s.dur_ns[row], "ends fit");
    while (block + 1 < blocks.size() && blocks[block + 1].first_slice <= row) block++;
    must(!blocks.empty() && blocks[block].first_slice <= row, "blocks");
    // a database has rows for places, not bytes
    must(t.source.format == "nsys_sqlite" || blocks[block].offset + s.place[row] < t.source.text_bytes, "places");
  }
  const std::size_t rows = s.size() + t.memory.size() + t.flows.size() + t.instants.size() + t.counters.size();
  must(rows > 0 || !t.issues.empty(), "an empty trace says why");
  for (const Issue& issue : t.issues) must(!issue.code.empty() && !issue.sentence.empty() && issue.count > 0, "issues");
}

}  // namespace stepscope::fuzz
