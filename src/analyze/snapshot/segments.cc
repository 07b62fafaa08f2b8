#include <map>
#include <string>
#include <tuple>

#include "analyze/snapshot/parts.h"
#include "model/answer_parts.h"
#include "snapshot/byte_sums.h"

namespace stepscope::analyze::device_memory {

using namespace snapshot;

namespace {

struct Sums {
  std::uint64_t segments = 0;
  std::int64_t reserved = 0, held = 0, asked = 0;
  std::uint64_t blocks = 0;
};

Table segments_table() {
  return table_of("segments",
                  {{"pool", ValueType::text, Unit::none, "default, or private: of a CUDA graph or made by the job"},
                   {"stream", ValueType::text, Unit::none, "Stream, as the allocator calls it; 0: the default one"},
                   {"type", ValueType::text, Unit::none, "small (blocks of at most 1 MiB) or large"},
                   {"expandable", ValueType::boolean, Unit::none, "Are they expandable segments?"},
                   {"segments", ValueType::integer, Unit::count, "Segments at the end of the recording"},
                   {"reserved_bytes", ValueType::integer, Unit::bytes, "Their bytes"},
                   {"held_bytes", ValueType::integer, Unit::bytes, "Blocks in them that live or wait for a stream"},
                   {"requested_bytes", ValueType::integer, Unit::bytes, "What the program asked for of these"},
                   {"free_bytes", ValueType::integer, Unit::bytes, "The rest"},
                   {"blocks", ValueType::integer, Unit::count, "Blocks that live or wait for a stream"}});
}

std::string_view size_word(std::int8_t small) { return small < 0 ? "" : small == 1 ? "small" : "large"; }

void add_rows(Table& table, const View& view) {
  const State state = state_at(view.history(), *view.device, view.device->last_moment());
  const Allocations& rows = view.history().allocations;
  std::map<std::tuple<std::string, std::string, std::int8_t, std::int8_t>, Sums> all;
  std::size_t next = 0;
  for (const Segment& segment : state.segments) {
    Sums& sums = all[{pool_name(view.snapshot(), segment.pool), stream_name(view.snapshot(), segment.stream),
                      segment.small, segment.expandable}];
    sums.segments++;
    sums.reserved = plus(sums.reserved, segment.bytes);
    const std::uint64_t end = behind(segment.address, segment.bytes);
    while (next < state.rows.size() && rows.address[state.rows[next]] < segment.address) next++;
    for (; next < state.rows.size() && rows.address[state.rows[next]] < end; next++) {
      sums.held = plus(sums.held, rows.block_bytes[state.rows[next]]);
      sums.asked = plus(sums.asked, rows.bytes[state.rows[next]]);
      sums.blocks++;
    }
  }
  for (const auto& [key, sums] : all) {
    const auto& [pool, stream, small, expandable] = key;
    table.rows.push_back(
        row_of(view, {text(pool), text(stream), text(size_word(small)),
                      expandable < 0 ? Value() : Value(expandable == 1), count(sums.segments), sums.reserved, sums.held,
                      sums.asked, plus(sums.reserved, -sums.held), count(sums.blocks)}));
  }
}

std::string shown(const AllocatorSetting& setting) {
  if (const auto* truth = std::get_if<bool>(&setting.value)) return *truth ? "True" : "False";
  if (const auto* number = std::get_if<std::int64_t>(&setting.value)) return std::to_string(*number);
  if (const auto* words = std::get_if<std::string>(&setting.value)) return *words;
  std::string digits = std::to_string(std::get<double>(setting.value));
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits += '0';
  return digits;
}

// Each once for all snapshots that agree; parts that are off, such as divisions of 0, say nothing.
Table settings_table(const Parts& parts) {
  Table table{.name = "settings",
              .columns = {{"setting", ValueType::text, Unit::none, "Setting of the allocator, as the file names it"},
                          {"value", ValueType::text, Unit::none, "Its value"},
                          {"snapshots", ValueType::integer, Unit::count, "Snapshots that have it so"}},
              .rows = {}};
  std::map<std::pair<std::string, std::string>, std::int64_t> values;
  std::vector<std::pair<std::string, std::string>> order;
  std::int64_t last = -1;
  for (const View& view : parts.views) {
    if (view.number == last) continue;  // another device of the same file
    last = view.number;
    for (const AllocatorSetting& setting : view.snapshot().settings) {
      const std::pair key(setting.name, shown(setting));
      if (setting.name.find('.') != std::string::npos && key.second == "0") continue;
      if (values[key]++ == 0) order.push_back(key);
    }
  }
  for (const auto& key : order) table.rows.push_back({key.first, text(key.second), values[key]});
  return table;
}

}  // namespace

void add_segments(Parts& parts) {
  Table segments = segments_table();
  for (const View& view : parts.views) add_rows(segments, view);
  parts.answer.tables.push_back(std::move(segments));
  parts.answer.tables.push_back(settings_table(parts));
}

}  // namespace stepscope::analyze::device_memory
