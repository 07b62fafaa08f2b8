#include "report/arrange.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/did_you_mean.h"
#include "report/format.h"

namespace stepscope::report {
namespace {

using Names = std::pair<std::string_view, std::string_view>;

// torch sums CPU and device memory apart; a recording's allocator events are counted together here.
constexpr std::array<Names, 19> kTorchNames{{{"count", "calls"},
                                             {"cpu_time_total", "host_total_ns"},
                                             {"self_cpu_time_total", "host_self_ns"},
                                             {"device_time_total", "device_total_ns"},
                                             {"self_device_time_total", "device_self_ns"},
                                             {"cuda_time_total", "device_total_ns"},
                                             {"self_cuda_time_total", "device_self_ns"},
                                             {"xpu_time_total", "device_total_ns"},
                                             {"self_xpu_time_total", "device_self_ns"},
                                             {"privateuse1_time_total", "device_total_ns"},
                                             {"self_privateuse1_time_total", "device_self_ns"},
                                             {"cpu_memory_usage", "total_allocated_bytes"},
                                             {"self_cpu_memory_usage", "self_allocated_bytes"},
                                             {"device_memory_usage", "total_allocated_bytes"},
                                             {"self_device_memory_usage", "self_allocated_bytes"},
                                             {"cuda_memory_usage", "total_allocated_bytes"},
                                             {"self_cuda_memory_usage", "self_allocated_bytes"},
                                             {"xpu_memory_usage", "total_allocated_bytes"},
                                             {"self_xpu_memory_usage", "self_allocated_bytes"}}};

// Per call in torch; a table has the total and the calls.
constexpr std::array<Names, 4> kTorchMeans{{{"cpu_time", "host_total_ns"},
                                            {"cuda_time", "device_total_ns"},
                                            {"device_time", "device_total_ns"},
                                            {"xpu_time", "device_total_ns"}}};

std::string_view group_for(std::string_view name) {
  if (name == "input_shape" || name == "group_by_input_shape" || name == "shapes") return "shape";
  return name == "group_by_stack_n" || name == "stack_n" ? "stack" : name;
}

std::size_t column_at(const Table& table, std::string_view name) {
  const auto found =
      std::find_if(table.columns.begin(), table.columns.end(), [&](const TableColumn& c) { return c.name == name; });
  return static_cast<std::size_t>(found - table.columns.begin());
}

bool before(const Value& a, const Value& b) {
  const bool a_known = !std::holds_alternative<std::monostate>(a), b_known = !std::holds_alternative<std::monostate>(b);
  if (a_known != b_known) return a_known;
  const auto x = number_of(a), y = number_of(b);
  if (x && y) return *x > *y;
  return a < b;
}

void sort_rows(Table& table, std::size_t column) {
  const auto cell = [column](const std::vector<Value>& row) { return column < row.size() ? row[column] : Value(); };
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [&](const auto& a, const auto& b) { return before(cell(a), cell(b)); });
}

// By the mean per call; false where the name is not torch's for one, or the table lacks what it is made of.
bool sort_by_mean(Table& table, std::string_view wanted) {
  const auto* mean =
      std::find_if(kTorchMeans.begin(), kTorchMeans.end(), [&](const Names& n) { return n.first == wanted; });
  if (mean == kTorchMeans.end()) return false;
  const std::size_t total = column_at(table, mean->second), calls = column_at(table, "calls");
  if (total == table.columns.size() || calls == table.columns.size()) return false;
  const auto mean_of = [&](const std::vector<Value>& row) -> Value {
    const auto sum = number_of(row[total]), count = number_of(row[calls]);
    return sum && count && *count > 0 ? Value(*sum / *count) : Value();
  };
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [&](const auto& a, const auto& b) { return before(mean_of(a), mean_of(b)); });
  return true;
}

bool all_unknown(const Table& table, std::size_t column) {
  return std::all_of(table.rows.begin(), table.rows.end(),
                     [&](const auto& row) { return column >= row.size() || row[column] == Value(); });
}

Error unknown_column(const Report& report, std::string_view wanted) {
  std::vector<std::string_view> known;
  const auto add = [&](std::string_view name) {
    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  };
  for (const Answer& answer : report.answers) {
    for (const Table& table : answer.tables) {
      for (const TableColumn& column : table.columns) add(column.name);
    }
  }
  if (std::find(known.begin(), known.end(), "host_self_ns") != known.end()) {
    for (const auto& [torch_name, ours] : kTorchNames) add(torch_name);
    for (const auto& [torch_name, ours] : kTorchMeans) add(torch_name);
  }
  return unknown_name("column", wanted, known);
}

Result<void> sort_tables(Report& report, std::string_view wanted) {
  bool found = false;
  for (Answer& answer : report.answers) {
    for (Table& table : answer.tables) {
      std::size_t column = column_at(table, wanted);
      if (column == table.columns.size()) column = column_at(table, column_for(wanted));
      if (column == table.columns.size()) {
        found |= sort_by_mean(table, wanted);
        continue;
      }
      sort_rows(table, column);
      found = true;
      if (!table.rows.empty() && all_unknown(table, column)) {
        answer.notes.push_back(
            fmt::format("{} is unknown in all rows of {}: their order is as it was.", wanted, table.name));
      }
    }
    if (found && wanted.ends_with("memory_usage")) {
      answer.notes.push_back(
          fmt::format("{} is torch's name; sorted by {}, which counts allocations on host and "
                      "devices together and subtracts no frees.",
                      wanted, column_for(wanted)));
    }
  }
  if (!found) return fail(unknown_column(report, wanted));
  return {};
}

Result<void> keep_group(Report& report, std::string_view wanted) {
  const std::string name = "by_" + std::string(group_for(wanted));
  bool found = false;
  std::vector<std::string_view> groups;
  for (Answer& answer : report.answers) {
    const auto is_group = [](const Table& table) { return table.name.starts_with("by_"); };
    if (std::none_of(answer.tables.begin(), answer.tables.end(), [&](const Table& t) { return t.name == name; })) {
      for (const Table& table : answer.tables) {
        if (is_group(table)) groups.push_back(std::string_view(table.name).substr(3));
      }
      continue;
    }
    found = true;
    std::erase_if(answer.tables, [&](const Table& table) { return is_group(table) && table.name != name; });
  }
  if (found) return {};
  Error error = unknown_name("group", wanted, groups);
  if (name == "by_shape" || name == "by_stack") {
    error.message = fmt::format("this recording has no {}s of operators", name.substr(3));
    error.hint = fmt::format("Record with {}=True; without it: --group-by {}",
                             name == "by_shape" ? "record_shapes" : "with_stack", fmt::join(groups, ", "));
  }
  return fail(std::move(error));
}

void cut_rows(Report& report, std::size_t limit) {
  for (Answer& answer : report.answers) {
    for (Table& table : answer.tables) {
      if (table.rows.size() <= limit) continue;
      answer.notes.push_back(
          fmt::format("Table {} shows {} of {} rows (--limit).", table.name, limit, table.rows.size()));
      table.rows.resize(limit);
    }
  }
}

}  // namespace

std::string_view column_for(std::string_view torch_name) {
  for (const auto& [name, ours] : kTorchNames) {
    if (name == torch_name) return ours;
  }
  return torch_name;
}

Result<void> arrange(Report& report, const Arrangement& wanted) {
  if (!wanted.group.empty()) {
    if (auto kept = keep_group(report, wanted.group); !kept) return kept;
  }
  if (!wanted.sort.empty()) {
    if (auto sorted = sort_tables(report, wanted.sort); !sorted) return sorted;
  }
  if (wanted.limit != 0) cut_rows(report, wanted.limit);
  return {};
}

}  // namespace stepscope::report
