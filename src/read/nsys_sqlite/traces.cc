#include "read/nsys_sqlite/traces.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "formats/json_text.h"

namespace stepscope::read::nsys {
namespace {

// 146 years from the session's start: what lies beyond is no time, and sums of such numbers would overflow.
constexpr std::int64_t kLatest = std::int64_t{1} << 62;

std::uint32_t count_or(std::int64_t value, std::uint32_t otherwise) {
  return value < 0 || value >= DeviceRows::kNoCount ? otherwise : static_cast<std::uint32_t>(value);
}

}  // namespace

TraceBuilder::TraceBuilder(const Export& file, std::int64_t process)
    : file_(file), process_(process), strings_(file.strings(), StringId::none) {}

StringId TraceBuilder::text(std::string_view bytes) {
  const bool plain = std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (plain) return trace.strings.intern(bytes);
  bool repaired = false;
  const std::string clean = formats::visible(bytes, repaired);
  repaired_texts_ += repaired ? 1 : 0;
  return trace.strings.intern(clean);
}

StringId TraceBuilder::string(std::int64_t string_id) {
  const std::size_t index = file_.string_index(string_id);
  if (index == std::string::npos) return StringId::none;
  StringId& known = strings_[index];
  if (known == StringId::none) known = text(file_.string_at(index));
  return known;
}

CategoryId TraceBuilder::category(std::string_view name, SliceKind kind) {
  const auto [at, fresh] = categories_.try_emplace(std::string(name), CategoryId::none);
  if (fresh && trace.categories.size() < static_cast<std::size_t>(CategoryId::none)) {
    at->second = static_cast<CategoryId>(trace.categories.size());
    trace.categories.push_back({text(name), kind});
  }
  return at->second;
}

TrackId TraceBuilder::add_track(Track track, TrackOrigin origin) {
  trace.tracks.push_back(track);
  origins_.push_back(std::move(origin));
  return static_cast<TrackId>(trace.tracks.size() - 1);
}

TrackId TraceBuilder::host_track(std::int64_t global_tid, std::string_view suffix) {
  if (suffix.empty() && global_tid == last_tid_ && last_thread_ != TrackId::none) return last_thread_;
  const auto [at, fresh] = tracks_.try_emplace("t" + std::to_string(global_tid) + std::string(suffix), TrackId::none);
  if (fresh) {
    const bool known = global_tid != kAbsent;
    Track track;
    track.process = text(known ? std::to_string(pid_of(global_tid)) : "");
    track.thread = text((known ? std::to_string(tid_of(global_tid)) : "") + std::string(suffix));
    at->second = add_track(track, {global_tid, std::string(suffix)});
  }
  if (suffix.empty()) {
    last_tid_ = global_tid;
    last_thread_ = at->second;
  }
  return at->second;
}

TrackId TraceBuilder::stream(std::int64_t device, std::int64_t stream) {
  if (device == last_device_ && stream == last_stream_ && last_stream_track_ != TrackId::none) {
    return last_stream_track_;
  }
  const std::string number = stream == kAbsent ? "-1" : std::to_string(stream);
  const std::string owner = device == kAbsent ? "-1" : std::to_string(device);
  const auto [at, fresh] = tracks_.try_emplace("s" + owner + " " + number, TrackId::none);
  if (fresh) {
    Track track;
    track.process = text(owner);
    track.thread = text(number);
    track.process_name = text("device " + owner);
    track.thread_name = text(stream == kAbsent ? "no stream" : "stream " + number);
    track.device = true;
    at->second = add_track(track, {});
  }
  last_device_ = device;
  last_stream_ = stream;
  return last_stream_track_ = at->second;
}

TrackId TraceBuilder::counter_lane(std::string_view process, std::string_view thread) {
  const auto [at, fresh] = tracks_.try_emplace("c" + std::string(process) + " " + std::string(thread), TrackId::none);
  if (fresh) {
    Track track;
    track.process = text(process);
    track.thread = text(thread);
    at->second = add_track(track, {});
  }
  return at->second;
}

void TraceBuilder::note(std::string_view code, Severity severity, std::string_view sentence, std::string_view advice) {
  add_issue(trace.issues, {std::string(code), severity, std::string(sentence), std::string(advice), 1,
                           file_.file().path(), std::nullopt, std::nullopt});
}

bool TraceBuilder::usable_time(std::int64_t time_ns) {
  if (time_ns > -kLatest && time_ns < kLatest) return true;
  note("missing_time", Severity::lost, "rows without a usable time were left out");
  return false;
}

std::uint32_t TraceBuilder::place(Table table, std::int64_t row) {
  const std::uint64_t at = place_of(table, row);
  std::vector<PlaceBlock>& blocks = trace.source.blocks;
  const bool fits = !blocks.empty() && blocks.back().offset >> kRowBits == at >> kRowBits &&
                    at >= blocks.back().offset &&
                    at - blocks.back().offset <= std::numeric_limits<std::uint32_t>::max();
  if (!fits) {
    blocks.push_back(
        {static_cast<std::uint32_t>(trace.slices.size()), static_cast<std::uint32_t>(trace.instants.size()), at});
  }
  return static_cast<std::uint32_t>(at - blocks.back().offset);
}

SliceId TraceBuilder::add_slice(Table table, std::int64_t row, std::int64_t start_ns, std::int64_t end_ns,
                                StringId name, TrackId track, CategoryId category) {
  trace.source.events++;
  if (!usable_time(start_ns) || !usable_time(end_ns)) return SliceId::none;
  if (end_ns < start_ns) {
    note("negative_duration", Severity::repaired, "negative durations were set to 0");
    end_ns = start_ns;
  }
  Slices& slices = trace.slices;
  slices.place.push_back(place(table, row));  // first: a new block begins at this very row
  slices.start_ns.push_back(start_ns);
  slices.dur_ns.push_back(end_ns - start_ns);
  slices.name.push_back(name);
  slices.track.push_back(track);
  slices.category.push_back(category);
  return static_cast<SliceId>(slices.size() - 1);
}

bool TraceBuilder::add_instant(Table table, std::int64_t row, std::int64_t time_ns, StringId name, TrackId track,
                               CategoryId category) {
  trace.source.events++;
  if (!usable_time(time_ns)) return false;
  Instants& instants = trace.instants;
  instants.place.push_back(place(table, row));
  instants.time_ns.push_back(time_ns);
  instants.name.push_back(name);
  instants.track.push_back(track);
  instants.category.push_back(category);
  return true;
}

void TraceBuilder::add_device_row(SliceId slice, const DeviceRow& row) {
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

void TraceBuilder::add_counter(std::int64_t time_ns, StringId name, StringId key, TrackId track, double value) {
  trace.source.events++;
  if (!usable_time(time_ns)) return;
  Counters& counters = trace.counters;
  counters.time_ns.push_back(time_ns);
  counters.name.push_back(name);
  counters.key.push_back(key);
  counters.track.push_back(track);
  counters.value.push_back(value);
}

void TraceBuilder::finish(const std::unordered_map<std::int64_t, std::string>& process_names,
                          const std::unordered_map<std::int64_t, std::int64_t>& thread_names) {
  for (std::size_t i = 0; i < trace.tracks.size(); i++) {
    const TrackOrigin& origin = origins_[i];
    if (origin.global_tid == kAbsent) continue;
    const auto process = process_names.find(process_of(origin.global_tid));
    if (process != process_names.end()) trace.tracks[i].process_name = text(process->second);
    const auto thread = thread_names.find(origin.global_tid);
    if (thread == thread_names.end()) continue;
    trace.tracks[i].thread_name = text(std::string(file_.string(thread->second)) + origin.suffix);
  }
  if (repaired_texts_ > 0) {
    add_issue(trace.issues,
              {"repaired_text", Severity::repaired, "texts with control bytes or invalid UTF-8 are shown with \\xNN",
               "", repaired_texts_, file_.file().path(), std::nullopt, std::nullopt});
  }
}

TraceBuilder& Traces::with_device_work(std::int64_t global_pid) {
  const std::int64_t process = process_of(global_pid);
  const auto [at, fresh] = by_process_.try_emplace(process, builders_.size());
  if (fresh) builders_.push_back(std::make_unique<TraceBuilder>(file_, process));
  return *builders_[at->second];
}

void Traces::settle() {
  std::erase_if(builders_, [&](const auto& builder) {
    if (builder->trace.device.size() > 0) return false;
    for (Issue& issue : builder->trace.issues) add_issue(file_.issues, std::move(issue));
    return true;
  });
  by_process_.clear();
  const auto lowest = [](const TraceBuilder& builder) {
    const auto devices = builder.trace.device.device.span();
    return devices.empty() ? std::numeric_limits<std::int32_t>::max()
                           : *std::min_element(devices.begin(), devices.end());
  };
  std::stable_sort(builders_.begin(), builders_.end(), [&](const auto& a, const auto& b) {
    return std::pair(lowest(*a), a->process()) < std::pair(lowest(*b), b->process());
  });
  for (std::size_t i = 0; i < builders_.size(); i++) by_process_[builders_[i]->process()] = i;
}

TraceBuilder& Traces::first() {
  if (builders_.empty()) builders_.push_back(std::make_unique<TraceBuilder>(file_, kAbsent));
  return *builders_.front();
}

TraceBuilder& Traces::of(std::int64_t global) {
  const auto found = by_process_.find(process_of(global));
  return found == by_process_.end() ? first() : *builders_[found->second];
}

TraceBuilder& Traces::of_device(std::int64_t device) {
  for (const auto& builder : builders_) {
    const auto devices = builder->trace.device.device.span();
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) return *builder;
  }
  return first();
}

}  // namespace stepscope::read::nsys
