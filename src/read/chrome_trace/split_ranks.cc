#include "read/chrome_trace/split_ranks.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "formats/json_text.h"
#include "read/chrome_trace/top_level.h"

namespace stepscope::read::chrome_trace {
namespace {

constexpr std::int64_t kProcesses = 1'000'000;  // processes of rank I have the numbers I * kProcesses + 1, + 2 …
constexpr std::int64_t kTextId = std::int64_t{1} << 40;
constexpr std::size_t kMostRanks = 1'000'000;
constexpr std::string_view kRankMember = "stepscope_rank_";

struct Process {
  std::string id;
  std::string name;  // empty: it had none
};

// What a member "stepscope_rank_I" says.
struct RankNote {
  std::int64_t offset_ns = 0;
  std::vector<Process> processes;
};

// The elements of a JSON array of objects.
std::vector<std::string_view> objects_of(std::string_view array) {
  std::vector<std::string_view> found;
  std::size_t at = array.find('{');
  while (at != array.npos) {
    const std::size_t end = formats::skip_value(array, at);
    if (end == array.npos) break;
    found.push_back(array.substr(at, end - at));
    at = array.find('{', end);
  }
  return found;
}

RankNote read_note(std::string_view json, Trace& trace) {
  RankNote note;
  RankInfo rank;
  for (const auto& [key, raw_key, value] : formats::members(json)) {
    if (key == "rank") rank.rank = formats::value_int(value, 0);
    if (key == "world_size") rank.world_size = formats::value_int(value, 0);
    if (key == "backend") rank.backend = formats::value_text(value);
    if (key == "offset_ns") note.offset_ns = formats::value_int(value, 0);
    if (key == "members" && value.starts_with('{')) {
      for (const auto& [name, raw_name, content] : formats::members(value)) {
        if (!name.empty()) apply_top_level(trace, name, content);
      }
    }
    if (key != "processes") continue;
    for (const std::string_view object : objects_of(value)) {
      Process& process = note.processes.emplace_back();
      for (const auto& [name, raw_name, content] : formats::members(object)) {
        if (name == "id") process.id = formats::value_text(content);
        if (name == "name") process.name = formats::value_text(content);
      }
    }
  }
  // Not what distributedInfo of the file it came from says: the user may have known better.
  trace.rank = std::move(rank);
  trace.rank.source = RankSource::distributed_info;
  return note;
}

// Rows of one rank, copied out of the merged trace with texts, tracks, categories and slices of its own.
class Part {
 public:
  Part(const Trace& from, std::string_view json, std::size_t index, std::size_t ranks)
      : from_(from), index_(index), ranks_(static_cast<std::int64_t>(ranks)) {
    to_.source = from.source;
    to_.source.blocks.clear();
    to_.source.events = 0;
    note_ = read_note(json, to_);
    tracks_.assign(from.tracks.size(), TrackId::none);
    categories_.assign(from.categories.size(), CategoryId::none);
  }

  // The track belongs to this rank: process `number` counts from 1.
  bool take_track(std::size_t track, std::int64_t number) {
    if (number < 1 || number > static_cast<std::int64_t>(note_.processes.size())) return false;
    const Process& process = note_.processes[static_cast<std::size_t>(number - 1)];
    Track copy = from_.tracks[track];
    copy.process = to_.strings.intern(process.id);
    copy.thread = text(copy.thread);
    copy.thread_name = text(copy.thread_name);
    copy.process_name = process.name.empty() ? StringId::none : to_.strings.intern(process.name);
    tracks_[track] = static_cast<TrackId>(to_.tracks.size());
    to_.tracks.push_back(copy);
    return true;
  }

  void copy_rows() {
    copy_slices();
    copy_details();
    copy_device();
    copy_collectives();
    copy_times();
  }
  Trace take() { return std::move(to_); }

 private:
  StringId text(StringId id) {
    if (id == StringId::none) return id;
    const auto [known, fresh] = texts_.try_emplace(static_cast<std::uint32_t>(id), StringId::none);
    if (fresh) known->second = to_.strings.intern(from_.strings[id]);
    return known->second;
  }
  TrackId track(TrackId id) const { return tracks_[static_cast<std::size_t>(id)]; }
  bool has(TrackId id) const { return track(id) != TrackId::none; }
  CategoryId category(CategoryId id) {
    if (id == CategoryId::none) return id;
    CategoryId& known = categories_[static_cast<std::size_t>(id)];
    if (known == CategoryId::none) {
      known = static_cast<CategoryId>(to_.categories.size());
      const Category& one = from_.categories[static_cast<std::size_t>(id)];
      to_.categories.push_back({text(one.name), one.kind});
    }
    return known;
  }
  SliceId slice(SliceId id) const { return slices_[static_cast<std::size_t>(id)]; }
  std::int64_t time(std::int64_t time_ns) const { return time_ns - note_.offset_ns; }

  // Places stay offsets in the text of the merged file; a block holds those within 4 GiB of its first.
  void copy_slices() {
    const Slices& s = from_.slices;
    const auto& blocks = from_.source.blocks;
    slices_.assign(s.size(), SliceId::none);
    std::size_t block = 0;
    for (std::size_t row = 0; row < s.size(); row++) {
      while (block + 1 < blocks.size() && blocks[block + 1].first_slice <= row) block++;
      if (!has(s.track[row])) continue;
      const std::uint64_t offset = (blocks.empty() ? 0 : blocks[block].offset) + s.place[row];
      auto& own = to_.source.blocks;
      const auto rows = static_cast<std::uint32_t>(to_.slices.size());
      if (own.empty() || offset < own.back().offset || offset - own.back().offset > UINT32_MAX) {
        own.push_back({rows, static_cast<std::uint32_t>(to_.instants.size()), offset});
      }
      slices_[row] = static_cast<SliceId>(rows);
      to_.slices.start_ns.push_back(time(s.start_ns[row]));
      to_.slices.dur_ns.push_back(s.dur_ns[row]);
      to_.slices.name.push_back(text(s.name[row]));
      to_.slices.track.push_back(track(s.track[row]));
      to_.slices.category.push_back(category(s.category[row]));
      to_.slices.place.push_back(static_cast<std::uint32_t>(offset - own.back().offset));
      to_.source.events++;
    }
  }

  // Calls `copy(row)` for the rows of a table whose slice belongs to this rank, after adding the slice.
  template <class Table, class Copy>
  void each_row(const Table& from, Table& to, Copy copy) {
    for (std::size_t row = 0; row < from.slice.size(); row++) {
      if (slice(from.slice[row]) == SliceId::none) continue;
      to.slice.push_back(slice(from.slice[row]));
      copy(row);
    }
  }

  void copy_details() {
    const Ops& ops = from_.ops;
    each_row(ops, to_.ops, [&](std::size_t row) {
      to_.ops.external_id.push_back(ops.external_id[row]);
      to_.ops.record_function_id.push_back(ops.record_function_id[row]);
      to_.ops.sequence.push_back(ops.sequence[row]);
      to_.ops.fwd_thread.push_back(ops.fwd_thread[row]);
      to_.ops.input_dims.push_back(text(ops.input_dims[row]));
      to_.ops.input_types.push_back(text(ops.input_types[row]));
      to_.ops.concrete_inputs.push_back(text(ops.concrete_inputs[row]));
      to_.ops.call_stack.push_back(text(ops.call_stack[row]));
      to_.ops.stream.push_back(ops.stream[row]);
    });
    const Launches& launches = from_.launches;
    each_row(launches, to_.launches, [&](std::size_t row) {
      to_.launches.correlation.push_back(launches.correlation[row]);
      to_.launches.external_id.push_back(launches.external_id[row]);
    });
    each_row(from_.copy_speeds, to_.copy_speeds,
             [&](std::size_t row) { to_.copy_speeds.gb_per_s.push_back(from_.copy_speeds.gb_per_s[row]); });
  }

  void copy_device() {
    const DeviceRows& from = from_.device;
    DeviceRows& to = to_.device;
    each_row(from, to, [&](std::size_t row) {
      to.correlation.push_back(from.correlation[row]);
      to.external_id.push_back(from.external_id[row]);
      to.device.push_back(from.device[row]);
      to.stream.push_back(from.stream[row]);
      for (int axis = 0; axis < 3; axis++) {
        to.grid[axis].push_back(from.grid[axis][row]);
        to.block[axis].push_back(from.block[axis][row]);
      }
      to.registers.push_back(from.registers[row]);
      to.shared_bytes.push_back(from.shared_bytes[row]);
      to.blocks_per_sm.push_back(from.blocks_per_sm[row]);
      to.warps_per_sm.push_back(from.warps_per_sm[row]);
      to.occupancy_percent.push_back(from.occupancy_percent[row]);
      to.bytes.push_back(from.bytes[row]);
      to.wait_stream.push_back(from.wait_stream[row]);
      to.wait_correlation.push_back(from.wait_correlation[row]);
    });
  }

  void copy_collectives() {
    const Collectives& from = from_.collectives;
    Collectives& to = to_.collectives;
    each_row(from, to, [&](std::size_t row) {
      to.kind.push_back(text(from.kind[row]));
      to.dtype.push_back(text(from.dtype[row]));
      to.in_elements.push_back(from.in_elements[row]);
      to.out_elements.push_back(from.out_elements[row]);
      to.group_size.push_back(from.group_size[row]);
      to.group_name.push_back(text(from.group_name[row]));
      to.group_ranks.push_back(text(from.group_ranks[row]));
      to.sequence.push_back(from.sequence[row]);
      to.peer.push_back(from.peer[row]);
      to.in_split.push_back(text(from.in_split[row]));
      to.out_split.push_back(text(from.out_split[row]));
    });
  }

  // Ids of arrows were made distinct over ranks: numbers were multiplied, texts got the rank before them.
  std::int64_t flow_id(std::int64_t id) {
    if (id == kAbsent) return id;
    const bool is_text = id >= kTextId && id - kTextId < static_cast<std::int64_t>(from_.strings.size());
    if (!is_text) return (id - static_cast<std::int64_t>(index_)) / ranks_;
    const std::string_view words = from_.strings[static_cast<StringId>(id - kTextId)];
    const std::size_t colon = words.find(':');
    const std::string_view own = colon == words.npos ? words : words.substr(colon + 1);
    return kTextId + static_cast<std::int64_t>(to_.strings.intern(own));
  }

  void copy_times() {
    const MemoryEvents& memory = from_.memory;
    for (std::size_t row = 0; row < memory.size(); row++) {
      if (!has(memory.track[row])) continue;
      to_.memory.time_ns.push_back(time(memory.time_ns[row]));
      to_.memory.track.push_back(track(memory.track[row]));
      to_.memory.bytes.push_back(memory.bytes[row]);
      to_.memory.address.push_back(memory.address[row]);
      to_.memory.total_allocated.push_back(memory.total_allocated[row]);
      to_.memory.total_reserved.push_back(memory.total_reserved[row]);
      to_.memory.device_type.push_back(memory.device_type[row]);
      to_.memory.device_index.push_back(memory.device_index[row]);
    }
    const Flows& flows = from_.flows;
    for (std::size_t row = 0; row < flows.size(); row++) {
      if (!has(flows.track[row])) continue;
      to_.flows.time_ns.push_back(time(flows.time_ns[row]));
      to_.flows.id.push_back(flow_id(flows.id[row]));
      to_.flows.track.push_back(track(flows.track[row]));
      to_.flows.category.push_back(category(flows.category[row]));
      to_.flows.phase.push_back(flows.phase[row]);
    }
    const Instants& instants = from_.instants;
    const auto& blocks = from_.source.blocks;
    std::size_t block = 0;
    for (std::size_t row = 0; row < instants.size(); row++) {
      while (block + 1 < blocks.size() && blocks[block + 1].first_instant <= row) block++;
      if (!has(instants.track[row])) continue;
      const std::uint64_t offset = (blocks.empty() ? 0 : blocks[block].offset) + instants.place[row];
      auto& own = to_.source.blocks;
      if (own.empty() || offset < own.back().offset || offset - own.back().offset > UINT32_MAX) {
        own.push_back(
            {static_cast<std::uint32_t>(to_.slices.size()), static_cast<std::uint32_t>(to_.instants.size()), offset});
      }
      to_.instants.time_ns.push_back(time(instants.time_ns[row]));
      to_.instants.name.push_back(text(instants.name[row]));
      to_.instants.track.push_back(track(instants.track[row]));
      to_.instants.category.push_back(category(instants.category[row]));
      to_.instants.place.push_back(static_cast<std::uint32_t>(offset - own.back().offset));
    }
    const Counters& counters = from_.counters;
    for (std::size_t row = 0; row < counters.size(); row++) {
      if (!has(counters.track[row])) continue;
      to_.counters.time_ns.push_back(time(counters.time_ns[row]));
      to_.counters.name.push_back(text(counters.name[row]));
      to_.counters.key.push_back(text(counters.key[row]));
      to_.counters.track.push_back(track(counters.track[row]));
      to_.counters.value.push_back(counters.value[row]);
    }
  }

  const Trace& from_;
  std::size_t index_;
  std::int64_t ranks_;
  Trace to_;
  RankNote note_;
  std::unordered_map<std::uint32_t, StringId> texts_;
  std::vector<TrackId> tracks_;
  std::vector<CategoryId> categories_;
  std::vector<SliceId> slices_;
};

const Metadata* member(const Trace& trace, std::string_view key) {
  for (const Metadata& entry : trace.metadata) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

std::size_t ranks_of(const Trace& trace) {
  const Metadata* merge = member(trace, "stepscope_merge");
  if (merge == nullptr || !merge->json.starts_with('{')) return 0;
  long long ranks = 0;
  for (const auto& [key, raw_key, value] : formats::members(merge->json)) {
    if (key == "ranks") ranks = formats::value_int(value, 0);
  }
  return ranks > 1 && ranks <= static_cast<long long>(kMostRanks) ? static_cast<std::size_t>(ranks) : 0;
}

}  // namespace

bool is_merged(const Trace& trace) { return member(trace, "stepscope_merge") != nullptr; }

std::vector<Trace> split_ranks(Trace merged) {
  const std::size_t ranks = ranks_of(merged);
  std::vector<Part> parts;
  for (std::size_t i = 0; i < ranks; i++) {
    const Metadata* note = member(merged, std::string(kRankMember) + std::to_string(i));
    if (note == nullptr || !note->json.starts_with('{')) break;
    parts.emplace_back(merged, note->json, i, ranks);
  }
  std::vector<Trace> all;
  if (parts.empty() || parts.size() != ranks) {
    merged.issues.push_back({"merge_notes_damaged", Severity::lost,
                             "the file was merged from several ranks, but what tells them apart is damaged",
                             "Merge it again", 1, merged.source.path, std::nullopt, std::nullopt});
    all.push_back(std::move(merged));
    return all;
  }
  std::uint64_t strange = 0;
  for (std::size_t track = 0; track < merged.tracks.size(); track++) {
    const std::int64_t process = formats::value_int(merged.strings[merged.tracks[track].process], -1);
    const std::size_t rank = process < 0 ? ranks : static_cast<std::size_t>(process / kProcesses);
    if (rank >= ranks || !parts[rank].take_track(track, process % kProcesses)) strange++;
  }
  for (Part& part : parts) {
    part.copy_rows();
    all.push_back(part.take());
  }
  all.front().issues = std::move(merged.issues);
  if (strange > 0) {
    all.front().issues.push_back({"merged_lanes_left_out", Severity::lost,
                                  "lanes of a merged file that belong to none of its ranks were left out", "", strange,
                                  all.front().source.path, std::nullopt, std::nullopt});
  }
  return all;
}

}  // namespace stepscope::read::chrome_trace
