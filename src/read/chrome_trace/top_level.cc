#include "read/chrome_trace/top_level.h"

#include <string>

#include "formats/json_text.h"

namespace stepscope::read::chrome_trace {
namespace {

constexpr std::size_t kMetadataLimit = 64 << 10;  // longer values are shown cut

void add_devices(Trace& trace, std::string_view array) {
  std::size_t at = 1;
  while (true) {
    at = formats::skip_space(array, at);
    if (at < array.size() && array[at] == ',') at = formats::skip_space(array, at + 1);
    if (at >= array.size() || array[at] != '{') return;
    std::size_t used = 0;
    DeviceInfo device;
    for (const auto& [key, raw_key, value] : formats::members(array.substr(at), &used)) {
      if (key == "id") device.id = formats::value_int(value, -1);
      if (key == "name") device.name = formats::value_text(value);
      if (key == "numSms") device.sm_count = formats::value_int(value, 0);
      if (key == "maxThreadsPerMultiprocessor") device.max_threads_per_sm = formats::value_int(value, 0);
      if (key == "warpSize") device.warp_size = formats::value_int(value, 0);
      if (key == "totalGlobalMem") device.memory_bytes = formats::value_int(value, 0);
      if (key == "computeMajor") device.compute_major = formats::value_int(value, 0);
      if (key == "computeMinor") device.compute_minor = formats::value_int(value, 0);
    }
    trace.devices.push_back(device);
    if (used == 0) return;
    at += used;
  }
}

// The items of the array that starts at text[0] == '[', as far as it is well formed.
std::vector<std::string_view> items(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = formats::skip_space(text, 1); at < text.size() && text[at] != ']';) {
    const std::size_t end = formats::skip_value(text, at);
    if (end == text.npos || end <= at) break;
    out.push_back(text.substr(at, end - at));
    at = formats::skip_space(text, end);
    if (at < text.size() && text[at] == ',') at = formats::skip_space(text, at + 1);
  }
  return out;
}

void add_groups(Trace& trace, std::string_view array) {
  for (const std::string_view object : items(array)) {
    if (object.front() != '{') continue;
    ProcessGroup group;
    for (const auto& [key, raw_key, value] : formats::members(object)) {
      if (key == "pg_name") group.name = formats::value_text(value);
      if (key == "pg_desc") group.description = formats::value_text(value);
      if (key == "backend_config") group.backend = formats::value_text(value);
      if (key == "pg_size") group.size = formats::value_int(value, 0);
      if (key != "ranks" || value.front() != '[') continue;
      for (const std::string_view rank : items(value)) {
        if (const long long number = formats::value_int(rank, -1); number >= 0) group.ranks.push_back(number);
      }
    }
    trace.groups.push_back(std::move(group));
  }
}

// Of our own hooks: [["", 0], ["layers.0", 1024], ["head", 512, 0, 512], …].
void add_module_sizes(Trace& trace, std::string_view array, std::uint8_t beside) {
  for (const std::string_view item : items(array)) {
    if (item.front() != '[') continue;
    const std::vector<std::string_view> row = items(item);
    if (row.size() != 2 && row.size() != 4) continue;
    const long long parameters = formats::value_int(row[1], -1);
    const long long unread = row.size() == 4 ? formats::value_int(row[2], -1) : 0;
    const long long learned = row.size() == 4 ? formats::value_int(row[3], -1) : 0;
    if (parameters < 0 || unread < 0 || learned < 0 || unread > parameters) continue;
    trace.module_sizes.push_back({formats::value_text(row[0]), parameters, unread, learned, beside});
  }
}

// [["cuda:0", "parameter", "layers.0", 4096], …].
void add_held_before(Trace& trace, std::string_view array) {
  for (const std::string_view item : items(array)) {
    if (item.front() != '[') continue;
    const std::vector<std::string_view> row = items(item);
    if (row.size() != 4) continue;
    const long long bytes = formats::value_int(row[3], -1);
    if (bytes < 0) continue;
    trace.held_before.push_back(
        {formats::value_text(row[0]), formats::value_text(row[1]), formats::value_text(row[2]), bytes});
  }
}

// [["train.py", 48, "item", 53], …].
void add_code(Trace& trace, std::string_view array) {
  for (const std::string_view item : items(array)) {
    if (item.front() != '[') continue;
    const std::vector<std::string_view> row = items(item);
    if (row.size() != 4) continue;
    const long long function_line = formats::value_int(row[1], -1), line = formats::value_int(row[3], -1);
    if (function_line < 0 || line < 0) continue;
    trace.code.push_back({formats::value_text(row[0]), function_line, formats::value_text(row[2]), line});
  }
}

void add_rank(Trace& trace, std::string_view object) {
  for (const auto& [key, raw_key, value] : formats::members(object)) {
    if (key == "backend") trace.rank.backend = formats::value_text(value);
    if (key == "pg_config" && value.front() == '[') add_groups(trace, value);
    if (key == "world_size") trace.rank.world_size = formats::value_int(value, 0);
    if (key != "rank") continue;
    const long long rank = formats::value_int(value, -1);
    if (rank < 0) continue;
    trace.rank.rank = rank;
    trace.rank.source = RankSource::distributed_info;
  }
}

}  // namespace

void apply_top_level(Trace& trace, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  if (key == "deviceProperties" && value.front() == '[') add_devices(trace, value);
  if (key == "distributedInfo" && value.front() == '{') add_rank(trace, value);
  if (key == "stepscope_modules" && value.front() == '[') add_module_sizes(trace, value, 0);
  if (key == "stepscope_modules_beside" && value.front() == '[') add_module_sizes(trace, value, 1);
  if (key == "stepscope_held" && value.front() == '[') add_held_before(trace, value);
  if (key == "stepscope_code" && value.front() == '[') add_code(trace, value);
  if (key == "baseTimeNanoseconds") trace.clock_base_ns = formats::value_int(value, kAbsent);
  if (key == "schemaVersion" || key == "deviceProperties" || key == "traceName") trace.source.writer = "kineto";
  trace.metadata.push_back({std::string(key), std::string(value.substr(0, kMetadataLimit))});
}

std::optional<Head> find_events(Trace& trace, std::string_view text) {
  std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  at = formats::skip_space(text, at);
  if (at >= text.size()) return std::nullopt;
  if (text[at] == '[') return Head{true, at + 1};
  std::vector<formats::RawMember> before;
  bool repaired = false;
  for (at++; at < text.size();) {
    at = formats::skip_space(text, at);
    if (at < text.size() && text[at] == ',') at = formats::skip_space(text, at + 1);
    if (at >= text.size() || text[at] != '"') return std::nullopt;
    const std::size_t key_end = formats::skip_value(text, at);
    if (key_end == std::string_view::npos) return std::nullopt;
    const std::size_t colon = formats::skip_space(text, key_end);
    if (colon >= text.size() || text[colon] != ':') return std::nullopt;
    const std::string key = formats::unescape(text.substr(at + 1, key_end - at - 2), repaired);
    at = formats::skip_space(text, colon + 1);
    if (at >= text.size()) return std::nullopt;
    if (key == "traceEvents" && text[at] == '[') {
      for (const auto& member : before) apply_top_level(trace, member.key, member.value);
      return Head{false, at + 1};
    }
    const std::size_t end = formats::skip_value(text, at);
    if (end == std::string_view::npos) return std::nullopt;
    before.push_back({key, {}, text.substr(at, end - at)});
    at = end;
  }
  return std::nullopt;
}

std::optional<Head> find_events_by_text(std::string_view text) {
  constexpr std::string_view key = "\"traceEvents\"";
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const std::size_t colon = formats::skip_space(text, at + key.size());
    if (colon >= text.size() || text[colon] != ':') continue;
    const std::size_t bracket = formats::skip_space(text, colon + 1);
    if (bracket < text.size() && text[bracket] == '[') return Head{false, bracket + 1};
  }
  return std::nullopt;
}

}  // namespace stepscope::read::chrome_trace
