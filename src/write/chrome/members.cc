// What stands beside the events of a file: the members that the trace came with, or those that a merged file needs.
#include <algorithm>

#include "write/chrome/event_writer.h"

namespace stepscope::write::chrome {
namespace {

using report::JsonWriter;

std::string text_of(std::string_view text) {
  JsonWriter json;
  json.text(text);
  return json.take();
}

std::string member(std::string_view key, std::string_view json) {
  return text_of(key) + ": " + std::string(json) + ",\n";
}

bool has(const Trace& trace, std::string_view key) {
  return std::any_of(trace.metadata.begin(), trace.metadata.end(), [&](const Metadata& m) { return m.key == key; });
}

std::string rank_json(const RankInfo& rank) {
  JsonWriter json;
  json.begin_object(JsonWriter::Layout::line).key("backend").text(rank.backend).key("rank").number(rank.rank);
  if (rank.world_size > 0) json.key("world_size").number(rank.world_size);
  json.end_object();
  return json.take();
}

std::string devices_json(const Trace& trace) {
  JsonWriter json;
  json.begin_array(JsonWriter::Layout::line);
  for (const DeviceInfo& device : trace.devices) {
    json.begin_object(JsonWriter::Layout::line).key("id").number(device.id).key("name").text(device.name);
    json.key("numSms").number(device.sm_count).key("maxThreadsPerMultiprocessor").number(device.max_threads_per_sm);
    json.key("warpSize").number(device.warp_size).key("totalGlobalMem").number(device.memory_bytes);
    json.key("computeMajor").number(device.compute_major).key("computeMinor").number(device.compute_minor).end_object();
  }
  json.end_array();
  return json.take();
}

// All but the rank, which a merged file tells in its own way.
std::string recorded_members(const Trace& trace) {
  std::string out;
  for (const Metadata& entry : trace.metadata) {
    if (entry.key != "traceEvents" && is_valid_json(entry.json)) out += member(entry.key, entry.json);
  }
  if (!has(trace, "deviceProperties") && !trace.devices.empty()) out += member("deviceProperties", devices_json(trace));
  if (!has(trace, "baseTimeNanoseconds") && trace.clock_base_ns != kAbsent) {
    out += member("baseTimeNanoseconds", std::to_string(trace.clock_base_ns));
  }
  return out;
}

std::string rank_member(const Run& run, std::size_t index) {
  const Trace& trace = run.traces[index];
  JsonWriter json;
  json.begin_object(JsonWriter::Layout::line).key("rank").number(trace.rank.rank);
  json.key("offset_ns").number(clock_offset_ns(run, index)).key("source").text(trace.source.path);
  if (trace.rank.world_size > 0) json.key("world_size").number(trace.rank.world_size);
  json.key("backend").text(trace.rank.backend);
  json.key("processes").begin_array(JsonWriter::Layout::line);
  for (const StringId process : processes_of(trace)) {
    const auto track = std::find_if(trace.tracks.begin(), trace.tracks.end(),
                                    [&](const Track& one) { return one.process == process; });
    json.begin_object(JsonWriter::Layout::line).key("id").text(trace.strings[process]);
    if (track->process_name != StringId::none) json.key("name").text(trace.strings[track->process_name]);
    json.end_object();
  }
  json.end_array().key("members").raw("{" + recorded_members(trace) + "\"\": null}").end_object();
  return json.take();
}

}  // namespace

std::int64_t clock_offset_ns(const Run& run, std::size_t index) { return run.traces[index].clock.offset_ns; }

Lanes Lanes::merged(const Run& run, std::size_t index, const WriteOptions& options) {
  return {true, run.traces[index].rank.rank, index, run.traces.size(), clock_offset_ns(run, index), options};
}

std::string own_members(const Trace& trace) {
  std::string out = recorded_members(trace);
  const bool known = trace.rank.world_size > 0 || trace.rank.source == RankSource::file_name;
  if (known && !has(trace, "distributedInfo")) out += member("distributedInfo", rank_json(trace.rank));
  return out;
}

std::string merge_members(const Run& run) {
  std::string out = member("stepscope_merge", "{\"version\": 1, \"ranks\": " + std::to_string(run.traces.size()) + "}");
  for (std::size_t i = 0; i < run.traces.size(); i++) {
    out += member("stepscope_rank_" + std::to_string(i), rank_member(run, i));
  }
  return out;
}

}  // namespace stepscope::write::chrome
