// copies: memory copies and fills by direction: how much, how fast, how much of it behind compute, and who asked for
// it.
//
// Direction and kind of memory are read from the name that the profiler gives ("Memcpy HtoD (Pageable -> Device)").
// Bandwidth is decimal GB/s: bytes over the time of the copies whose bytes are known. Exposed is the time of a copy in
// which no compute ran on its device.
#include <algorithm>

#include "analyze/analysis.h"
#include "base/key_index.h"
#include "model/answer_parts.h"
#include "model/buckets.h"
#include "model/copy_way.h"
#include "model/host_names.h"
#include "model/lookup.h"

namespace stepscope::analyze {
namespace {

// The same for a fill, which has a kind of memory alone: "Memset (Device)".
CopyWay way_of(std::string_view name, bool set) {
  if (!set) return copy_way(name);
  CopyWay out{.direction = "set"};
  const std::size_t open = name.find('('), close = name.find(')', open);
  if (open != name.npos && close != name.npos) out.destination = name.substr(open + 1, close - open - 1);
  return out;
}

struct Sum {
  StringId name = StringId::none;
  StringId op = StringId::none;  // by_op: its name
  std::int64_t count = 0, bytes = 0, known = 0, time_ns = 0, known_ns = 0, exposed_ns = 0, host_ns = 0, small = 0;
  std::uint8_t phase = 0;
  bool set = false;

  bool pageable(const Trace& trace) const { return copy_way(trace.strings[name]).pageable(); }
};

struct DeviceCopies {
  const Trace* trace;
  const DeviceTime* device;
  std::vector<Sum> by_name, by_op;
};

// Host time of the call that asked for this copy alone; a graph launch asks for much else.
std::int64_t call_ns(const Trace& trace, std::uint32_t row) {
  const SliceId launch = trace.device.launch[row];
  if (launch == SliceId::none) return 0;
  const LaunchKind kind = launch_kind(trace.name(launch));
  return kind == LaunchKind::copy || kind == LaunchKind::set ? trace.slices.dur_ns[launch] : 0;
}

void add(Sum& sum, const Trace& trace, std::uint32_t row, std::int64_t exposed_ns) {
  const std::int64_t duration = trace.slices.dur_ns[trace.device.slice[row]], bytes = trace.device.bytes[row];
  sum.count++;
  sum.time_ns += duration;
  sum.exposed_ns += exposed_ns;
  sum.host_ns += call_ns(trace, row);
  if (bytes < 0) return;  // not given
  sum.bytes += bytes;
  sum.known++;
  sum.known_ns += duration;
  sum.small += bytes <= kSmallCopyBytes;
}

bool is_copy(std::uint8_t device_class) {
  return device_class == static_cast<std::uint8_t>(DeviceClass::memory_copy) ||
         device_class == static_cast<std::uint8_t>(DeviceClass::memory_set);
}

DeviceCopies copies_of(const Trace& trace, const DeviceTime& device) {
  DeviceCopies out{.trace = &trace, .device = &device};
  KeyIndex names, ops;
  IntervalSweep compute(device.of(DeviceClass::compute));
  for (const std::uint32_t row : device.rows) {
    if (!is_copy(trace.device.device_class[row])) continue;
    const SliceId slice = trace.device.slice[row];
    const Interval when{trace.slices.start_ns[slice], trace.slices.end_ns(slice)};
    const std::int64_t exposed = when.end - when.start - compute.part_of(when);
    const StringId name = trace.slices.name[slice];
    const bool set = trace.device.device_class[row] == static_cast<std::uint8_t>(DeviceClass::memory_set);
    const std::uint32_t at = names[static_cast<std::uint32_t>(name)];
    if (at == out.by_name.size()) out.by_name.push_back({.name = name, .set = set});
    add(out.by_name[at], trace, row, exposed);

    const StringId op = op_name(trace, trace.device.op[row]);
    const std::uint8_t phase = trace.device.phase[row];
    const std::uint32_t pair = ops[static_cast<std::uint64_t>(static_cast<std::uint32_t>(op)) << 32 |
                                   static_cast<std::uint64_t>(phase) << 24 | at];  // few names of copies
    if (pair == out.by_op.size()) out.by_op.push_back({.name = name, .op = op, .phase = phase, .set = set});
    add(out.by_op[pair], trace, row, exposed);
  }
  const auto slower = [](const Sum& a, const Sum& b) { return a.time_ns > b.time_ns; };
  std::stable_sort(out.by_name.begin(), out.by_name.end(), slower);
  std::stable_sort(out.by_op.begin(), out.by_op.end(), slower);
  return out;
}

// Bytes over ns are GB/s.
Value bandwidth(const Sum& sum) {
  return sum.known_ns > 0 ? Value(static_cast<double>(sum.bytes) / static_cast<double>(sum.known_ns)) : Value();
}

const std::vector<TableColumn>& amount_columns() {
  static const std::vector<TableColumn> columns{
      {"count", ValueType::integer, Unit::count, "Copies or fills"},
      {"bytes", ValueType::integer, Unit::bytes, "Bytes of those that record them; unknown: none does"},
      {"time_ns", ValueType::integer, Unit::ns, "Sum of durations"},
      {"gb_per_s", ValueType::real, Unit::gb_per_s, "Bytes over the time of the copies whose bytes are known"},
      {"exposed_ns", ValueType::integer, Unit::ns, "Part of the time in which no compute ran on the device"},
      {"host_ns", ValueType::integer, Unit::ns,
       "Host time in the calls that asked for them, graph launches left out; copies that block are long"},
      {"small_count", ValueType::integer, Unit::count, "Those of at most 64 KiB"}};
  return columns;
}

void append_amounts(std::vector<Value>& row, const Sum& sum) {
  row.insert(row.end(), {sum.count, value_if(sum.known > 0, sum.bytes), sum.time_ns, bandwidth(sum), sum.exposed_ns,
                         sum.host_ns, value_if(sum.known > 0, sum.small)});
}

Table directions_table(const std::vector<DeviceCopies>& devices) {
  Table table{.name = "directions",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"device", ValueType::integer, Unit::none, "Device of the rank"},
                          {"direction", ValueType::text, Unit::none,
                           "HtoD, DtoH, DtoD, PtoP (between devices), HtoH, or set; unknown: the name does not tell"},
                          {"source", ValueType::text, Unit::none, "Kind of memory read: Pageable, Pinned, Device …"},
                          {"destination", ValueType::text, Unit::none, "Kind of memory written"}}};
  table.columns.insert(table.columns.end(), amount_columns().begin(), amount_columns().end());
  for (const DeviceCopies& found : devices) {
    for (const Sum& sum : found.by_name) {
      const CopyWay way = way_of(found.trace->strings[sum.name], sum.set);
      std::vector<Value> row{found.device->rank, device_number(*found.device), text(way.direction), text(way.source),
                             text(way.destination)};
      append_amounts(row, sum);
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

Table ops_table(const std::vector<DeviceCopies>& devices) {
  Table table{.name = "ops",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"device", ValueType::integer, Unit::none, "Device of the rank"},
                          {"op", ValueType::text, Unit::none, "Innermost operator or range that asked; unknown: none"},
                          {"phase", ValueType::text, Unit::none, "Phase of the call"},
                          {"copy", ValueType::text, Unit::none, "Name of the copy or fill"}}};
  table.columns.insert(table.columns.end(), amount_columns().begin(), amount_columns().end());
  for (const DeviceCopies& found : devices) {
    for (const Sum& sum : found.by_op) {
      const auto phase = static_cast<Phase>(std::min<std::size_t>(sum.phase, kPhases - 1));
      std::vector<Value> row{found.device->rank, device_number(*found.device), text(found.trace->strings[sum.op]),
                             std::string(to_string(phase)), text(found.trace->strings[sum.name])};
      append_amounts(row, sum);
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

// GB/s over the pieces of the span, one series for each direction of a device.
void add_series(Answer& answer, const DeviceCopies& found) {
  const Trace& trace = *found.trace;
  const auto buckets = buckets_of(found.device->span);
  if (buckets.empty()) return;
  for (const Sum& kind : found.by_name) {
    if (kind.known == 0 || kind.known_ns == 0) continue;
    std::vector<double> bytes(buckets.size());
    for (const std::uint32_t row : found.device->rows) {
      const SliceId slice = trace.device.slice[row];
      const std::int64_t duration = trace.slices.dur_ns[slice];
      if (trace.slices.name[slice] != kind.name || trace.device.bytes[row] <= 0 || duration == 0) continue;
      spread(bytes, buckets, {trace.slices.start_ns[slice], trace.slices.end_ns(slice)},
             static_cast<double>(trace.device.bytes[row]) / static_cast<double>(duration));
    }
    Series series{.name = std::string(trace.strings[kind.name]) + "_rank" + std::to_string(found.device->rank),
                  .unit = Unit::gb_per_s};
    if (found.device->device >= 0) series.name += "_device" + std::to_string(found.device->device);
    for (std::size_t i = 0; i < buckets.size(); i++) {
      series.t_ns.push_back(buckets[i].start);
      series.v.push_back(bytes[i] / static_cast<double>(buckets[i].end - buckets[i].start));
    }
    answer.series.push_back(std::move(series));
  }
}

struct CopyTotals {
  Sum all, pageable, small;
  std::int64_t span_ns = 0;
};

void merge(Sum& into, const Sum& sum) {
  into.count += sum.count;
  into.bytes += sum.bytes;
  into.known += sum.known;
  into.time_ns += sum.time_ns;
  into.known_ns += sum.known_ns;
  into.exposed_ns += sum.exposed_ns;
  into.host_ns += sum.host_ns;
  into.small += sum.small;
}

CopyTotals totals_of(const std::vector<DeviceCopies>& devices) {
  CopyTotals totals;
  for (const DeviceCopies& found : devices) {
    totals.span_ns += found.device->span.end - found.device->span.start;
    for (const Sum& sum : found.by_name) {
      merge(totals.all, sum);
      if (sum.pageable(*found.trace)) merge(totals.pageable, sum);
      if (!sum.set && sum.small * 10 >= sum.count * 9) merge(totals.small, sum);
    }
  }
  return totals;
}

void add_scalars(Answer& answer, const CopyTotals& totals, bool device_work) {
  const Sum& all = totals.all;
  const auto scalar = [&](std::string_view name, Value value, Unit unit, std::string_view meaning, bool known) {
    add_scalar(answer, name, known ? std::move(value) : Value(), unit,
               known         ? meaning
               : device_work ? "No copy in the recording says how many bytes it moved"
                             : kNoDeviceWork);
  };
  scalar("copy_count", all.count, Unit::count, "Copies and fills of all devices", device_work);
  scalar("bytes", all.bytes, Unit::bytes, "Bytes that they moved or wrote, where recorded", all.known > 0);
  scalar("time_ns", all.time_ns, Unit::ns, "Sum of their durations", device_work);
  scalar("exposed_ns", all.exposed_ns, Unit::ns, "Part of it in which no compute ran on their device", device_work);
  scalar("pageable_count", totals.pageable.count, Unit::count,
         "Copies from or to pageable host memory: these block the host and do not overlap", device_work);
  scalar("small_count", all.small, Unit::count, "Copies and fills of at most 64 KiB", all.known > 0);
}

// Names the operator that asked for most copies of the kind that `wanted` picks.
template <class Wanted>
void place(Finding& finding, const std::vector<DeviceCopies>& devices, const Wanted& wanted) {
  const Sum* most = nullptr;
  for (const DeviceCopies& found : devices) {
    for (const Sum& sum : found.by_op) {
      if (!wanted(sum, *found.trace) || sum.op == StringId::none || (most != nullptr && most->count >= sum.count))
        continue;
      most = &sum;
      finding.where.rank = found.device->rank;
      finding.where.op = std::string(found.trace->strings[sum.op]);
      finding.where.phase = std::string(to_string(static_cast<Phase>(std::min<std::size_t>(sum.phase, kPhases - 1))));
    }
  }
}

void find_pageable(Answer& answer, const std::vector<DeviceCopies>& devices, const CopyTotals& totals) {
  const std::int64_t cost = std::max(totals.pageable.host_ns, totals.pageable.exposed_ns);
  if (cost * 100 <= totals.span_ns) return;  // below 1 % of the span it is not worth a change
  Finding finding{
      .id = "pageable_copies",
      .cause = "copy",
      .sentence = "Copies between the device and pageable host memory block the host until they are done",
      .evidence = {{.text = "Pageable copies", .value = totals.pageable.count, .unit = Unit::count},
                   {.text = "Host time in their calls", .value = totals.pageable.host_ns, .unit = Unit::ns},
                   {.text = "Bandwidth", .value = bandwidth(totals.pageable), .unit = Unit::gb_per_s}},
      .gain_reason = std::string(kNoGain),
      .confidence = "high",
      .next =
          "Set pin_memory=True in the DataLoader and copy with .to(device, non_blocking=True); results go back into "
          "a pinned buffer, or less often (.item(), .cpu() and print(tensor) are such copies)"};
  place(finding, devices, [](const Sum& sum, const Trace& trace) { return sum.pageable(trace); });
  answer.findings.push_back(std::move(finding));
}

void find_small(Answer& answer, const std::vector<DeviceCopies>& devices, const CopyTotals& totals) {
  const Sum& small = totals.small;
  if (small.count < 100 || std::max(small.host_ns, small.exposed_ns) * 50 <= totals.span_ns) return;
  Finding finding{.id = "small_copies",
                  .cause = "copy",
                  .sentence = "Many copies move so little that asking for them costs more than moving the bytes",
                  .evidence = {{.text = "Copies of at most 64 KiB", .value = small.small, .unit = Unit::count},
                               {.text = "Bytes in all", .value = small.bytes, .unit = Unit::bytes},
                               {.text = "Host time in their calls", .value = small.host_ns, .unit = Unit::ns}},
                  .gain_reason = std::string(kNoGain),
                  .confidence = "medium",
                  .next =
                      "Pack the tensors into one buffer before copying, or keep them on the device; copies.ops names "
                      "the operators"};
  place(finding, devices, [](const Sum& sum, const Trace&) { return !sum.set && sum.small * 10 >= sum.count * 9; });
  answer.findings.push_back(std::move(finding));
}

Result<Answer> run_copies(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  const auto ranks = rank_times(run);
  std::vector<DeviceCopies> devices;
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) devices.push_back(copies_of(*rank.trace, device));
  }
  const CopyTotals totals = totals_of(devices);
  add_scalars(answer, totals, !devices.empty());
  answer.tables = {directions_table(devices), ops_table(devices)};
  for (const DeviceCopies& found : devices) add_series(answer, found);
  find_pageable(answer, devices, totals);
  find_small(answer, devices, totals);
  limit_rows(answer, answer.tables[1], options.max_rows, "those with less time");
  if (devices.empty()) answer.notes.push_back(std::string(kNoDeviceWork));
  if (totals.all.count > totals.all.known) {
    answer.notes.push_back(std::to_string(totals.all.count - totals.all.known) + " of " +
                           std::to_string(totals.all.count) +
                           " copies and fills do not record their bytes; bandwidth is over the others.");
  }
  return answer;
}

}  // namespace

Analysis copies_analysis() {
  return {"copies", "What is copied and filled, how fast, and is it hidden behind compute?", run_copies};
}

}  // namespace stepscope::analyze
