#include "write/chrome/event_writer.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>

#include "model/collective_work.h"

namespace stepscope::write::chrome {
namespace {

using report::JsonWriter;

constexpr std::int64_t kTextId = std::int64_t{1} << 40;  // see Flows

// Microseconds with the ns behind the point.
std::string microseconds(std::int64_t ns) {
  const bool negative = ns < 0;
  const auto size = negative ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  std::string text = std::to_string(size / 1000), fraction = std::to_string(size % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  return (negative ? "-" : "") + text + "." + fraction;
}

bool is_whole_number(std::string_view text) {
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || digits.size() > 18 || (digits.size() > 1 && digits[0] == '0')) return false;
  return std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

bool is_valid_json(std::string_view text) {
  thread_local simdjson::dom::parser parser;
  return parser.parse(text.data(), text.size()).error() == simdjson::SUCCESS;
}

std::vector<StringId> processes_of(const Trace& trace) {
  std::vector<StringId> processes;
  for (const Track& track : trace.tracks) {
    if (std::find(processes.begin(), processes.end(), track.process) == processes.end()) {
      processes.push_back(track.process);
    }
  }
  return processes;
}

void EventWriter::each_event(const Take& take) {
  slices(take);
  memory(take);
  flows(take);
  instants(take);
  counters(take);
  names(take);
}

void EventWriter::id_member(std::string_view key, StringId id) {
  if (id == StringId::none) return;
  const std::string_view text = trace_.strings[id];
  json_.key(key);
  if (is_whole_number(text)) {
    json_.raw(text);
  } else {
    json_.text(text);
  }
}

void EventWriter::process_member(std::size_t track) {
  if (!lanes_.is_merged) return id_member("pid", trace_.tracks[track].process);
  const auto all = processes_of(trace_);
  const auto at = std::find(all.begin(), all.end(), trace_.tracks[track].process) - all.begin();
  json_.key("pid").number(static_cast<std::int64_t>(lanes_.index) * kProcesses + at + 1);
}

void EventWriter::begin(std::string_view phase, std::string_view name, std::size_t track, std::int64_t time_ns) {
  json_.begin_object(JsonWriter::Layout::line).key("ph").text(phase).key("name").text(name);
  process_member(track);
  id_member("tid", trace_.tracks[track].thread);
  json_.key("ts").raw(microseconds(time_ns + lanes_.offset_ns));
}

void EventWriter::finish(const Take& take) {
  json_.end_object();
  take(json_.take());
  json_ = JsonWriter();
}

void EventWriter::category_member(CategoryId category) {
  if (category == CategoryId::none) return;
  json_.key("cat").text(trace_.strings[trace_.categories[static_cast<std::size_t>(category)].name]);
}

void EventWriter::number(std::string_view key, std::int64_t value) {
  if (value != kAbsent) json_.key(key).number(value);
}
void EventWriter::real(std::string_view key, double value) {
  if (!std::isnan(value)) json_.key(key).number(value);
}
void EventWriter::text(std::string_view key, StringId value) {
  if (value == StringId::none) return;
  const std::string_view words = trace_.strings[value];
  const auto [known, fresh] = is_array_.try_emplace(static_cast<std::uint32_t>(value), false);
  if (fresh) known->second = words.starts_with('[') && is_valid_json(words);
  json_.key(key);
  if (known->second) {
    json_.raw(words);
  } else {
    json_.text(words);
  }
}

void EventWriter::triple(std::string_view key, const Column<std::uint32_t>* columns, std::size_t row) {
  if (columns[0][row] == 0 && columns[1][row] == 0 && columns[2][row] == 0) return;
  json_.key(key).begin_array(JsonWriter::Layout::line);
  for (int axis = 0; axis < 3; axis++) json_.number(columns[axis][row]);
  json_.end_array();
}

void EventWriter::op_arguments(std::size_t row) {
  const Ops& ops = trace_.ops;
  number("External id", ops.external_id[row]);
  number("Record function id", ops.record_function_id[row]);
  number("Sequence number", ops.sequence[row]);
  number("Fwd thread id", ops.fwd_thread[row]);
  number("stream", ops.stream[row]);
  text("Input Dims", ops.input_dims[row]);
  text("Input type", ops.input_types[row]);
  text("Concrete Inputs", ops.concrete_inputs[row]);
  text("Call stack", ops.call_stack[row]);
}

void EventWriter::launch_arguments(std::size_t row) {
  number("correlation", trace_.launches.correlation[row]);
  number("External id", trace_.launches.external_id[row]);
}

void EventWriter::device_arguments(std::size_t row) {
  const DeviceRows& rows = trace_.device;
  const auto count = [](std::uint32_t value) {
    return value == DeviceRows::kNoCount ? kAbsent : static_cast<std::int64_t>(value);
  };
  number("correlation", rows.correlation[row]);
  number("External id", rows.external_id[row]);
  number("device", rows.device[row] == -1 ? kAbsent : rows.device[row]);
  number("stream", rows.stream[row]);
  triple("grid", rows.grid, row);
  triple("block", rows.block, row);
  number("registers per thread", count(rows.registers[row]));
  number("shared memory", count(rows.shared_bytes[row]));
  real("blocks per SM", static_cast<double>(rows.blocks_per_sm[row]));
  real("warps per SM", static_cast<double>(rows.warps_per_sm[row]));
  real("est. achieved occupancy %", static_cast<double>(rows.occupancy_percent[row]));
  number("bytes", rows.bytes[row]);
  number("wait_on_stream", rows.wait_stream[row]);
  number("wait_on_cuda_event_record_corr_id", rows.wait_correlation[row]);
}

void EventWriter::collective_arguments(std::size_t row) {
  const Collectives& rows = trace_.collectives;
  text("Collective name", rows.kind[row]);
  text("dtype", rows.dtype[row]);
  number("In msg nelems", rows.in_elements[row]);
  number("Out msg nelems", rows.out_elements[row]);
  number("Group size", rows.group_size[row]);
  text("Process Group Name", rows.group_name[row]);
  text("Process Group Ranks", rows.group_ranks[row]);
  number("Seq", rows.sequence[row]);
  // only sends and receives have it, and one word of the two tells which this is
  const bool receives = collective_kind(trace_.strings[rows.kind[row]]) == CollectiveKind::receive;
  number(receives ? "Src Rank" : "Dst Rank", rows.peer[row]);
  text("In split size", rows.in_split[row]);
  text("Out split size", rows.out_split[row]);
}

// The tables about slices are sorted by slice: one walk over all of them together.
void EventWriter::slices(const Take& take) {
  const Slices& s = trace_.slices;
  std::size_t op = 0, launch = 0, device = 0, collective = 0, copy = 0;
  const auto next_is = [](const Column<SliceId>& column, std::size_t& at, std::size_t row) {
    return at < column.size() && static_cast<std::size_t>(column[at]) == row && ++at != 0;
  };
  for (std::size_t row = 0; row < s.size(); row++) {
    const auto slice = static_cast<SliceId>(row);
    begin("X", trace_.name(slice), static_cast<std::size_t>(s.track[row]), s.start_ns[row]);
    json_.key("dur").raw(microseconds(s.dur_ns[row]));
    category_member(s.category[row]);
    json_.key("args").begin_object(JsonWriter::Layout::line);
    if (next_is(trace_.ops.slice, op, row)) op_arguments(op - 1);
    if (next_is(trace_.launches.slice, launch, row)) launch_arguments(launch - 1);
    if (next_is(trace_.device.slice, device, row)) device_arguments(device - 1);
    if (next_is(trace_.collectives.slice, collective, row)) collective_arguments(collective - 1);
    if (next_is(trace_.copy_speeds.slice, copy, row)) {
      real("memory bandwidth (GB/s)", static_cast<double>(trace_.copy_speeds.gb_per_s[copy - 1]));
    }
    json_.end_object();
    finish(take);
  }
}

void EventWriter::memory(const Take& take) {
  const MemoryEvents& rows = trace_.memory;
  for (std::size_t row = 0; row < rows.size(); row++) {
    begin("i", "[memory]", static_cast<std::size_t>(rows.track[row]), rows.time_ns[row]);
    json_.key("s").text("t").key("cat").text("cpu_instant_event");
    json_.key("args").begin_object(JsonWriter::Layout::line);
    number("Bytes", rows.bytes[row]);
    number("Addr", rows.address[row]);
    number("Total Allocated", rows.total_allocated[row]);
    number("Total Reserved", rows.total_reserved[row]);
    number("Device Type", rows.device_type[row] == -1 ? kAbsent : rows.device_type[row]);
    number("Device Id", rows.device_index[row] == -1 ? kAbsent : rows.device_index[row]);
    json_.end_object();
    finish(take);
  }
}

void EventWriter::flow_id(std::int64_t id) {
  if (id == kAbsent) return;
  json_.key("id");
  const bool is_text = id >= kTextId && id - kTextId < static_cast<std::int64_t>(trace_.strings.size());
  if (is_text) {
    const std::string lead = lanes_.is_merged ? std::to_string(lanes_.index) + ":" : "";
    json_.text(lead + std::string(trace_.strings[static_cast<StringId>(id - kTextId)]));
  } else {
    json_.number(id * static_cast<std::int64_t>(lanes_.ranks) + static_cast<std::int64_t>(lanes_.index));
  }
}

void EventWriter::flows(const Take& take) {
  const Flows& rows = trace_.flows;
  for (std::size_t row = 0; row < rows.size(); row++) {
    const CategoryId category = rows.category[row];
    const std::string_view name = category == CategoryId::none
                                      ? "flow"
                                      : trace_.strings[trace_.categories[static_cast<std::size_t>(category)].name];
    begin(std::string(1, rows.phase[row]), name, static_cast<std::size_t>(rows.track[row]), rows.time_ns[row]);
    category_member(category);
    flow_id(rows.id[row]);
    if (rows.phase[row] == 'f') json_.key("bp").text("e");
    finish(take);
  }
}

void EventWriter::instants(const Take& take) {
  const Instants& rows = trace_.instants;
  for (std::size_t row = 0; row < rows.size(); row++) {
    begin("i", trace_.strings[rows.name[row]], static_cast<std::size_t>(rows.track[row]), rows.time_ns[row]);
    json_.key("s").text("t");
    category_member(rows.category[row]);
    finish(take);
  }
}

void EventWriter::counters(const Take& take) {
  const Counters& rows = trace_.counters;
  for (std::size_t row = 0; row < rows.size(); row++) {
    begin("C", trace_.strings[rows.name[row]], static_cast<std::size_t>(rows.track[row]), rows.time_ns[row]);
    json_.key("args").begin_object(JsonWriter::Layout::line);
    json_.key(trace_.strings[rows.key[row]]).number(rows.value[row]).end_object();
    finish(take);
  }
}

void EventWriter::names(const Take& take) {
  const auto name = [&](std::string_view what, std::size_t track, bool thread, std::string_view label) {
    json_.begin_object(JsonWriter::Layout::line).key("ph").text("M").key("name").text(what);
    process_member(track);
    if (thread) id_member("tid", trace_.tracks[track].thread);
    json_.key("args").begin_object(JsonWriter::Layout::line).key("name").text(label).end_object();
    finish(take);
  };
  std::vector<StringId> named;
  for (std::size_t i = 0; i < trace_.tracks.size(); i++) {
    const Track& track = trace_.tracks[i];
    const std::string_view process = trace_.strings[track.process_name];
    if (std::find(named.begin(), named.end(), track.process) == named.end()) {
      named.push_back(track.process);
      const std::string_view label = process.empty() ? trace_.strings[track.process] : process;
      const bool of_rank = lanes_.is_merged && !is_of_machine(trace_, track);
      if (of_rank) name("process_name", i, false, lane_name(lanes_.rank, label, lanes_.options));
      if (!of_rank && track.process_name != StringId::none) name("process_name", i, false, process);
    }
    if (track.thread_name != StringId::none) name("thread_name", i, true, trace_.strings[track.thread_name]);
    if (track.sort_index == kAbsent) continue;
    json_.begin_object(JsonWriter::Layout::line).key("ph").text("M").key("name").text("thread_sort_index");
    process_member(i);
    id_member("tid", track.thread);
    json_.key("args").begin_object(JsonWriter::Layout::line).key("sort_index").number(track.sort_index).end_object();
    finish(take);
  }
}

}  // namespace stepscope::write::chrome
