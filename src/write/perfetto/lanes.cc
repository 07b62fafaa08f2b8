#include "write/perfetto/lanes.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace stepscope::write::perfetto {
namespace {

using formats::ProtoWriter;

// A process or thread as Perfetto numbers them: 0 means the idle task there, and Numbers gives those from kOwnProcess
// on.
std::optional<std::int32_t> number_of(std::string_view text) {
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && (text.empty() || text[0] != '0');
  return whole && number > 0 && number < kOwnProcess ? std::optional(number) : std::nullopt;
}

std::string label(const Trace& trace, StringId name, StringId id, std::string_view kind) {
  if (name != StringId::none && !trace.strings[name].empty()) return std::string(trace.strings[name]);
  return std::string(kind) + " " + std::string(trace.strings[id]);
}

struct Described {
  std::int32_t pid;
  std::uint64_t track;
};

void describe_track(Packets& packets, const Trace& trace, std::size_t index, const Lanes& lanes, Described process) {
  const Track& track = trace.tracks[index];
  const std::string name = label(trace, track.thread_name, track.thread, track.device ? "stream" : "thread");
  const auto tid = track.device ? std::nullopt : number_of(trace.strings[track.thread]);
  for (std::uint32_t lane = 0; lane < lanes.count[index]; lane++) {
    packets.track([&](ProtoWriter& out) {
      out.number(wire::track::uuid, lanes.first[index] + lane);
      out.number(wire::track::parent, process.track);
      out.text(wire::track::name, name);
      if (tid && lane == 0) {
        out.begin(wire::track::thread);
        out.number(wire::thread::pid, static_cast<std::uint64_t>(process.pid));
        out.number(wire::thread::tid, static_cast<std::uint64_t>(*tid));
        out.text(wire::thread::name, name);
        out.end();
      } else {  // lanes of one track are drawn as one, two tracks of the same name are not
        out.number(wire::track::merge, wire::track::merge_by_key);
        out.number(wire::track::merge_key, lanes.first[index]);
      }
    });
  }
}

void describe_counter(Packets& packets, std::uint64_t uuid, std::uint64_t process, std::string_view name, bool bytes) {
  packets.track([&](ProtoWriter& out) {
    out.number(wire::track::uuid, uuid);
    if (process != 0) out.number(wire::track::parent, process);
    out.text(wire::track::name, name);
    out.begin(wire::track::counter);
    if (bytes) out.number(wire::counter::unit, wire::counter::unit_bytes);
    out.end();
  });
}

void describe_counters(Packets& packets, const Trace& trace, const Lanes& lanes, const RankNames& names) {
  const auto process = [&](TrackId track) {
    return lanes.processes[lanes.process_of[static_cast<std::size_t>(track)]];
  };
  for (const auto& [key, uuid] : lanes.counters) {
    const auto& [track, name_id, key_id] = key;
    const std::string_view name = trace.strings[name_id], value = trace.strings[key_id];
    const std::string whole =
        value.empty() || value == name ? std::string(name) : std::string(name) + " " + std::string(value);
    describe_counter(packets, uuid, process(track), whole, false);
  }
  for (const auto& [key, uuid] : lanes.memory) {
    const auto& [type, index, is_reserved] = key;
    const std::string device = type == 0 ? "CPU" : "device " + std::to_string(index);
    describe_counter(packets, uuid, 0, names((is_reserved ? "reserved, " : "allocated, ") + device), true);
  }
}

void plan_counters(const Trace& trace, Numbers& numbers, Lanes& lanes) {
  const Counters& counters = trace.counters;
  for (std::size_t row = 0; row < counters.size(); row++) {
    lanes.counters.try_emplace({counters.track[row], counters.name[row], counters.key[row]}, 0);
  }
  for (auto& [key, uuid] : lanes.counters) uuid = numbers.tracks(1);
  const MemoryEvents& memory = trace.memory;
  for (std::size_t row = 0; row < memory.size(); row++) {
    const auto add = [&](const NarrowColumn& total, bool is_reserved) {
      if (!total.has(row)) return;
      lanes.memory.try_emplace({memory.device_type[row], memory.device_index[row], is_reserved}, 0);
    };
    add(memory.total_allocated, false);
    add(memory.total_reserved, true);
  }
  for (auto& [key, uuid] : lanes.memory) uuid = numbers.tracks(1);
}

}  // namespace

std::uint32_t visit_lanes(const Trace& trace, std::size_t track, const LaneVisitor& visitor) {
  struct Open {
    SliceId slice;
    std::int64_t end_ns;
  };
  std::vector<std::vector<Open>> lanes;
  const auto close_until = [&](std::uint32_t lane, std::int64_t time_ns) {
    for (; !lanes[lane].empty() && lanes[lane].back().end_ns <= time_ns; lanes[lane].pop_back()) {
      visitor.close(lanes[lane].back().slice, lane);
    }
  };
  if (track + 1 >= trace.track_begin.size()) return 0;
  for (std::uint32_t i = trace.track_begin[track]; i < trace.track_begin[track + 1]; i++) {
    const SliceId slice = trace.by_track[i];
    const std::int64_t end_ns = trace.slices.end_ns(slice);
    std::uint32_t lane = 0;
    for (; lane < lanes.size(); lane++) {
      close_until(lane, trace.slices.start_ns[slice]);
      if (lanes[lane].empty() || end_ns <= lanes[lane].back().end_ns) break;
    }
    if (lane == lanes.size()) lanes.emplace_back();
    lanes[lane].push_back({slice, end_ns});
    visitor.open(slice, lane);
  }
  const auto count = static_cast<std::uint32_t>(lanes.size());
  for (std::uint32_t lane = 0; lane < count; lane++) close_until(lane, std::numeric_limits<std::int64_t>::max());
  return count;
}

Lanes plan_lanes(const Trace& trace, Numbers& numbers) {
  Lanes lanes;
  lanes.about = numbers.tracks(1);
  std::vector<StringId> processes;
  for (std::size_t i = 0; i < trace.tracks.size(); i++) {
    const StringId process = trace.tracks[i].process;
    const auto known = std::find(processes.begin(), processes.end(), process);
    lanes.process_of.push_back(static_cast<std::size_t>(known - processes.begin()));
    if (known == processes.end()) {
      processes.push_back(process);
      lanes.processes.push_back(numbers.tracks(1));
    }
    const auto nothing = [](SliceId, std::uint32_t) {};
    lanes.count.push_back(std::max(1u, visit_lanes(trace, i, {nothing, nothing})));
    lanes.first.push_back(numbers.tracks(lanes.count.back()));
  }
  plan_counters(trace, numbers, lanes);
  return lanes;
}

void describe_lanes(Packets& packets, const Trace& trace, const Lanes& lanes, Numbers& numbers,
                    const RankNames& names) {
  std::vector<Described> described(lanes.processes.size(), {0, 0});
  for (std::size_t i = 0; i < trace.tracks.size(); i++) {
    const Track& track = trace.tracks[i];
    Described& process = described[lanes.process_of[i]];
    if (process.track == 0) {  // ranks of several hosts may share numbers
      const auto recorded = names.is_merged ? std::nullopt : number_of(trace.strings[track.process]);
      process = {recorded ? *recorded : numbers.process(), lanes.processes[lanes.process_of[i]]};
      const std::string own = label(trace, track.process_name, track.process, "process");
      const std::string name = is_of_machine(trace, track) ? own : names(own);
      packets.track([&](ProtoWriter& out) {
        out.number(wire::track::uuid, process.track);
        out.text(wire::track::name, name);
        out.begin(wire::track::process);
        out.number(wire::process::pid, static_cast<std::uint64_t>(process.pid));
        out.text(wire::process::name, name);
        out.end();
      });
    }
    if (!is_of_machine(trace, track)) describe_track(packets, trace, i, lanes, process);  // else counters alone
  }
  describe_counters(packets, trace, lanes, names);
}

}  // namespace stepscope::write::perfetto
