#include "read/trace_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "formats/json_text.h"

namespace stepscope::read {
namespace {

// 146 years: what lies beyond is no time, and sums of such numbers would overflow.
constexpr std::int64_t kLatest = std::int64_t{1} << 62;

std::string number_or_none(std::int64_t number) { return number == kAbsent ? "-1" : std::to_string(number); }

std::uint32_t count_or(std::int64_t value, std::uint32_t otherwise) {
  return value < 0 || value >= DeviceRows::kNoCount ? otherwise : static_cast<std::uint32_t>(value);
}

}  // namespace

StringId TraceRows::text(std::string_view bytes) {
  const bool plain = std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (plain) return trace.strings.intern(bytes);
  bool repaired = false;
  const std::string clean = formats::visible(bytes, repaired);
  repaired_texts_ += repaired ? 1 : 0;
  return trace.strings.intern(clean);
}

CategoryId TraceRows::category(std::string_view name, SliceKind kind) {
  const auto [at, fresh] = categories_.try_emplace(std::string(name), CategoryId::none);
  if (fresh && trace.categories.size() < static_cast<std::size_t>(CategoryId::none)) {
    at->second = static_cast<CategoryId>(trace.categories.size());
    trace.categories.push_back({text(name), kind});
  }
  return at->second;
}

TrackId TraceRows::add_track(const Track& track) {
  trace.tracks.push_back(track);
  return static_cast<TrackId>(trace.tracks.size() - 1);
}

TrackId TraceRows::lane(std::string_view process, std::string_view thread) {
  const auto [at, fresh] = lanes_.try_emplace(std::string(process) + " " + std::string(thread), TrackId::none);
  if (fresh) {
    Track track;
    track.process = text(process);
    track.thread = text(thread);
    at->second = add_track(track);
  }
  return at->second;
}

TrackId TraceRows::device_lane(std::int64_t device, std::string_view name) {
  return lane(number_or_none(device), name);
}

TrackId TraceRows::stream(std::int64_t device, std::int64_t stream, std::string_view word) {
  const auto [at, fresh] = streams_.try_emplace({device, stream}, TrackId::none);
  if (fresh) {
    const std::string number = number_or_none(stream), owner = number_or_none(device);
    Track track;
    track.process = text(owner);
    track.thread = text(number);
    track.process_name = text("device " + owner);
    track.thread_name = text(stream == kAbsent ? "no " + std::string(word) : std::string(word) + " " + number);
    track.device = true;
    at->second = add_track(track);
  }
  return at->second;
}

void TraceRows::note(std::string_view code, Severity severity, std::string_view sentence, std::string_view advice,
                     std::optional<std::uint64_t> offset) {
  add_issue(trace.issues,
            {std::string(code), severity, std::string(sentence), std::string(advice), 1, file_, offset, std::nullopt});
}

void TraceRows::note_repaired_texts() {
  if (repaired_texts_ == 0) return;
  add_issue(trace.issues,
            {"repaired_text", Severity::repaired, "texts with control bytes or invalid UTF-8 are shown with \\xNN", "",
             repaired_texts_, file_, std::nullopt, std::nullopt});
}

bool TraceRows::usable_time(std::int64_t time_ns) {
  if (time_ns > -kLatest && time_ns < kLatest) return true;
  note("missing_time", Severity::lost, "rows without a usable time were left out");
  return false;
}

std::uint32_t TraceRows::place_in_block(std::uint64_t place) {
  std::vector<PlaceBlock>& blocks = trace.source.blocks;
  const bool fits = !blocks.empty() && place >= blocks.back().offset &&
                    place - blocks.back().offset <= std::numeric_limits<std::uint32_t>::max();
  if (!fits) {
    blocks.push_back(
        {static_cast<std::uint32_t>(trace.slices.size()), static_cast<std::uint32_t>(trace.instants.size()), place});
  }
  return static_cast<std::uint32_t>(place - blocks.back().offset);
}

SliceId TraceRows::add_slice(std::uint64_t place, std::int64_t start_ns, std::int64_t end_ns, StringId name,
                             TrackId track, CategoryId category) {
  trace.source.events++;
  if (!usable_time(start_ns) || !usable_time(end_ns)) return SliceId::none;
  if (end_ns < start_ns) {
    note("negative_duration", Severity::repaired, "negative durations were set to 0");
    end_ns = start_ns;
  }
  Slices& slices = trace.slices;
  slices.place.push_back(place_in_block(place));  // first: a new block begins at this very row
  slices.start_ns.push_back(start_ns);
  slices.dur_ns.push_back(end_ns - start_ns);
  slices.name.push_back(name);
  slices.track.push_back(track);
  slices.category.push_back(category);
  return static_cast<SliceId>(slices.size() - 1);
}

bool TraceRows::add_instant(std::uint64_t place, std::int64_t time_ns, StringId name, TrackId track,
                            CategoryId category) {
  trace.source.events++;
  if (!usable_time(time_ns)) return false;
  Instants& instants = trace.instants;
  instants.place.push_back(place_in_block(place));
  instants.time_ns.push_back(time_ns);
  instants.name.push_back(name);
  instants.track.push_back(track);
  instants.category.push_back(category);
  return true;
}

void TraceRows::add_device_row(SliceId slice, const DeviceRow& row) {
  DeviceRows& out = trace.device;
  out.slice.push_back(slice);
  out.correlation.push_back(row.correlation);
  out.external_id.push_back(kAbsent);
  const bool device_fits = row.device >= 0 && row.device <= std::numeric_limits<std::int32_t>::max();
  out.device.push_back(device_fits ? static_cast<std::int32_t>(row.device) : -1);
  out.stream.push_back(row.stream);
  for (int axis = 0; axis < 3; axis++) {
    out.grid[axis].push_back(count_or(row.grid[axis], 0));
    out.block[axis].push_back(count_or(row.block[axis], 0));
  }
  out.registers.push_back(count_or(row.registers, DeviceRows::kNoCount));
  out.shared_bytes.push_back(count_or(row.shared_bytes, DeviceRows::kNoCount));
  out.blocks_per_sm.push_back(std::nanf(""));
  out.warps_per_sm.push_back(std::nanf(""));
  out.occupancy_percent.push_back(std::nanf(""));
  out.bytes.push_back(row.bytes);
  out.wait_stream.push_back(row.wait_stream);
  out.wait_correlation.push_back(row.wait_correlation);
}

void TraceRows::add_launch(SliceId slice, std::int64_t correlation) {
  trace.launches.slice.push_back(slice);
  trace.launches.correlation.push_back(correlation);
  trace.launches.external_id.push_back(kAbsent);
}

void TraceRows::add_op(SliceId slice, const RangeName& range) {
  Ops& ops = trace.ops;
  ops.slice.push_back(slice);
  ops.external_id.push_back(kAbsent);
  ops.record_function_id.push_back(range.call);
  ops.sequence.push_back(range.sequence);
  ops.fwd_thread.push_back(kAbsent);
  ops.stream.push_back(kAbsent);
  ops.input_dims.push_back(range.sizes.empty() ? StringId::none : text(range.sizes));
  ops.input_types.push_back(StringId::none);
  ops.concrete_inputs.push_back(StringId::none);
  ops.call_stack.push_back(StringId::none);
}

void TraceRows::add_counter(std::int64_t time_ns, StringId name, StringId key, TrackId track, double value) {
  trace.source.events++;
  if (!usable_time(time_ns)) return;
  Counters& counters = trace.counters;
  counters.time_ns.push_back(time_ns);
  counters.name.push_back(name);
  counters.key.push_back(key);
  counters.track.push_back(track);
  counters.value.push_back(value);
}

void TraceRows::add_memory(const MemoryRow& row) {
  trace.source.events++;
  if (!usable_time(row.time_ns)) return;
  MemoryEvents& events = trace.memory;
  events.time_ns.push_back(row.time_ns);
  events.track.push_back(device_lane(row.device, "device memory"));
  events.bytes.push_back(row.bytes);
  events.address.push_back(row.address);
  events.total_allocated.push_back(kAbsent);
  events.total_reserved.push_back(kAbsent);
  events.device_type.push_back(row.device_type);
  const bool fits = row.device >= 0 && row.device < 0x7fff;
  events.device_index.push_back(fits ? static_cast<std::int16_t>(row.device) : std::int16_t{-1});
}

}  // namespace stepscope::read
