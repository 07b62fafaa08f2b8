// The events of one trace as JSON objects, one at a time, and the members that stand beside the events.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/trace.h"
#include "report/json_writer.h"
#include "write/writer.h"

namespace stepscope::write::chrome {

// Processes of rank I of a merged file have the numbers I * kProcesses + 1, + 2 …
inline constexpr std::int64_t kProcesses = 1'000'000;

// How ids and times of one rank are written.
struct Lanes {
  bool is_merged = false;
  std::int64_t rank = 0;
  std::size_t index = 0, ranks = 1;  // of the trace in the run
  std::int64_t offset_ns = 0;        // added to every time
  WriteOptions options;

  static Lanes own() { return {}; }
  static Lanes merged(const Run& run, std::size_t index, const WriteOptions& options);
};

// What is added to the times of a trace so that all ranks share the run's clock. A drift is left in: it is zero in the
// middle of what the ranks share, and without it the file comes back to the nanosecond.
std::int64_t clock_offset_ns(const Run& run, std::size_t index);

// `"key": value, ` for all that stands beside the events.
std::string own_members(const Trace& trace);
std::string merge_members(const Run& run);

class EventWriter {
 public:
  EventWriter(const Trace& trace, Lanes lanes) : trace_(trace), lanes_(std::move(lanes)) {}

  using Take = std::function<void(std::string_view event)>;
  void each_event(const Take& take);

 private:
  void names(const Take& take);
  void slices(const Take& take);
  void memory(const Take& take);
  void flows(const Take& take);
  void instants(const Take& take);
  void counters(const Take& take);

  void begin(std::string_view phase, std::string_view name, std::size_t track, std::int64_t time_ns);
  void finish(const Take& take);
  void id_member(std::string_view key, StringId id);
  void process_member(std::size_t track);
  void category_member(CategoryId category);
  void number(std::string_view key, std::int64_t value);  // left out when absent
  void real(std::string_view key, double value);          // left out when NaN
  void text(std::string_view key, StringId value);        // arrays as such; left out when none
  void triple(std::string_view key, const Column<std::uint32_t>* columns, std::size_t row);
  void op_arguments(std::size_t row);
  void launch_arguments(std::size_t row);
  void device_arguments(std::size_t row);
  void collective_arguments(std::size_t row);
  void flow_id(std::int64_t id);

  const Trace& trace_;
  Lanes lanes_;
  report::JsonWriter json_;
  std::unordered_map<std::uint32_t, bool> is_array_;  // of texts
};

// The number that a process has in a merged file, by the order of first use among the tracks.
std::vector<StringId> processes_of(const Trace& trace);

// One JSON value, as it may stand in a file of ours.
bool is_valid_json(std::string_view text);

}  // namespace stepscope::write::chrome
