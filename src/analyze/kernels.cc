// kernels: which device work takes the time, by name, by family (with the rule that says so) and by launch shape.
//
// Copies and fills are rows as well, so that the shares add up to all device work. Shares are of the sum of durations
// on the device, where work that ran at once counts as often as it ran.
#include <algorithm>

#include "analyze/analysis.h"
#include "model/answer_parts.h"
#include "model/kernel_groups.h"

namespace stepscope::analyze {
namespace {

using Rows = std::vector<std::vector<Value>>;

const std::vector<TableColumn>& time_columns() {
  static const std::vector<TableColumn> columns{
      {"count", ValueType::integer, Unit::count, "How often it ran"},
      {"total_ns", ValueType::integer, Unit::ns, "Sum of durations"},
      {"share", ValueType::real, Unit::ratio, "Share of the summed device work of this rank's device"},
      {"mean_ns", ValueType::integer, Unit::ns, "Mean duration"},
      {"min_ns", ValueType::integer, Unit::ns, "Shortest"},
      {"max_ns", ValueType::integer, Unit::ns, "Longest"}};
  return columns;
}

const std::vector<TableColumn>& fill_columns() {
  static const std::vector<TableColumn> columns{
      {"blocks_per_sm", ValueType::real, Unit::none, "Blocks over SMs of the device, weighted by duration"},
      {"occupancy", ValueType::real, Unit::ratio, "Estimated occupancy, weighted by duration"}};
  return columns;
}

void append(std::vector<TableColumn>& to, const std::vector<TableColumn>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void append_times(std::vector<Value>& row, const KernelGroup& group, std::int64_t whole_ns) {
  row.insert(row.end(), {count(group.count), group.total_ns, share(group.total_ns, whole_ns),
                         group.total_ns / static_cast<std::int64_t>(group.count), group.min_ns, group.max_ns});
}

void append_fill(std::vector<Value>& row, const KernelGroup& group) {
  row.insert(row.end(), {to_value(group.blocks_per_sm.mean()), to_value(group.occupancy.mean())});
}

std::string class_of(const Trace& trace, std::uint32_t row) {
  const auto found = std::min<std::size_t>(trace.device.device_class[row], kDeviceClasses - 1);
  return std::string(to_string(static_cast<DeviceClass>(found)));
}

Value family_of(const Trace& trace, std::uint32_t row) {
  const ClassRule* rule = rule_of(trace, row);
  return rule == nullptr ? Value() : text(rule->family);
}

// Shows the groups of all devices, heaviest first whatever the device.
template <class MakeRow>
Rows rows_of(const std::vector<RankTime>& ranks, KernelKey key, const MakeRow& make_row) {
  struct Found {
    std::int64_t total_ns;
    std::vector<Value> row;
  };
  std::vector<Found> found;
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) {
      for (const KernelGroup& group : kernel_groups(*rank.trace, device.rows, key)) {
        found.push_back({group.total_ns, make_row(*rank.trace, device, group)});
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.total_ns > b.total_ns; });
  Rows rows;
  for (Found& one : found) rows.push_back(std::move(one.row));
  return rows;
}

Table kernels_table(const std::vector<RankTime>& ranks) {
  Table table{
      .name = "kernels",
      .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                  {"device", ValueType::integer, Unit::none, "Device of the rank"},
                  {"name", ValueType::text, Unit::none, "Name of the kernel, copy or fill"},
                  {"class", ValueType::text, Unit::none, "Class of device work"},
                  {"family", ValueType::text, Unit::none, "Family that the rule gives; unknown: no rule fits"}}};
  append(table.columns, time_columns());
  append(table.columns, fill_columns());
  table.rows =
      rows_of(ranks, KernelKey::name, [](const Trace& trace, const DeviceTime& device, const KernelGroup& group) {
        std::vector<Value> row{device.rank, device_number(device),
                               std::string(trace.name(trace.device.slice[group.example])),
                               class_of(trace, group.example), family_of(trace, group.example)};
        append_times(row, group, device.work_ns);
        append_fill(row, group);
        return row;
      });
  return table;
}

Table families_table(const std::vector<RankTime>& ranks) {
  Table table{.name = "families",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"device", ValueType::integer, Unit::none, "Device of the rank"},
                          {"family", ValueType::text, Unit::none, "Family; unknown: no rule fits"},
                          {"class", ValueType::text, Unit::none, "Class of device work"},
                          {"rule", ValueType::text, Unit::none, "Name of the rule that decided"},
                          {"why", ValueType::text, Unit::none, "What the rule looks for, and why that says so"}}};
  append(table.columns, time_columns());
  table.rows =
      rows_of(ranks, KernelKey::rule, [](const Trace& trace, const DeviceTime& device, const KernelGroup& group) {
        const ClassRule* rule = rule_of(trace, group.example);
        std::vector<Value> row{
            device.rank,
            device_number(device),
            family_of(trace, group.example),
            class_of(trace, group.example),
            rule == nullptr ? Value() : text(rule->name),
            rule == nullptr ? Value(std::string("No rule fits the names of this work")) : text(rule->why)};
        append_times(row, group, device.work_ns);
        return row;
      });
  return table;
}

std::string sizes(const Column<std::uint32_t> (&axes)[3], std::uint32_t row) {
  return std::to_string(axes[0][row]) + "," + std::to_string(axes[1][row]) + "," + std::to_string(axes[2][row]);
}

Value number_or_unknown(std::uint32_t number) {
  return number == DeviceRows::kNoCount ? Value() : Value(static_cast<std::int64_t>(number));
}

Table variants_table(const std::vector<RankTime>& ranks) {
  Table table{.name = "variants",
              .columns = {{"rank", ValueType::integer, Unit::none, "Rank"},
                          {"device", ValueType::integer, Unit::none, "Device of the rank"},
                          {"name", ValueType::text, Unit::none, "Name of the kernel"},
                          {"grid", ValueType::text, Unit::none, "Blocks in x,y,z; unknown: not recorded"},
                          {"block", ValueType::text, Unit::none, "Threads of a block in x,y,z; unknown: not recorded"},
                          {"registers", ValueType::integer, Unit::none, "Registers per thread"},
                          {"shared_bytes", ValueType::integer, Unit::bytes, "Shared memory per block"}}};
  append(table.columns, time_columns());
  append(table.columns, fill_columns());
  table.rows =
      rows_of(ranks, KernelKey::variant, [](const Trace& trace, const DeviceTime& device, const KernelGroup& group) {
        const std::uint32_t at = group.example;
        const DeviceRows& work = trace.device;
        std::vector<Value> row{device.rank,
                               device_number(device),
                               std::string(trace.name(work.slice[at])),
                               work.grid[0][at] == 0 ? Value() : Value(sizes(work.grid, at)),
                               work.block[0][at] == 0 ? Value() : Value(sizes(work.block, at)),
                               number_or_unknown(work.registers[at]),
                               number_or_unknown(work.shared_bytes[at])};
        append_times(row, group, device.work_ns);
        append_fill(row, group);
        return row;
      });
  return table;
}

void add_scalars(Answer& answer, const std::vector<RankTime>& ranks) {
  std::int64_t work_ns = 0, events = 0, classified_ns = 0;
  for (const RankTime& rank : ranks) {
    for (const DeviceTime& device : rank.devices) {
      work_ns += device.work_ns;
      events += static_cast<std::int64_t>(device.rows.size());
      for (const std::uint32_t row : device.rows) {
        if (rule_of(*rank.trace, row) != nullptr)
          classified_ns += rank.trace->slices.dur_ns[rank.trace->device.slice[row]];
      }
    }
  }
  const bool known = events > 0;
  add_scalar(answer, "device_event_count", events, Unit::count,
             "Kernels, copies and fills of all devices; waits are not work");
  add_scalar(answer, "device_time_ns", known ? Value(work_ns) : Value(), Unit::ns,
             known ? "Sum of their durations; work that ran at once counts as often as it ran" : kNoDeviceWork);
  add_scalar(answer, "family_share", share(classified_ns, work_ns), Unit::ratio,
             known ? "Share of this time for which a named rule gives the family" : kNoDeviceWork);
}

Result<Answer> run_kernels(const Run& run, const AnalyzeOptions& options) {
  if (auto derived = require_derived(run); !derived) return fail(derived.error());
  Answer answer;
  const auto ranks = rank_times(run);
  add_scalars(answer, ranks);
  answer.tables = {families_table(ranks), kernels_table(ranks), variants_table(ranks)};
  for (Table& table : answer.tables) limit_rows(answer, table, options.max_rows, "those with less time");
  if (!has_device_work(ranks)) answer.notes.push_back(std::string(kNoDeviceWork));
  return answer;
}

}  // namespace

Analysis kernels_analysis() { return {"kernels", "Which kernels take the time of the device?", run_kernels}; }

}  // namespace stepscope::analyze
