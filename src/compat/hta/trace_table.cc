// trace_table: what is left of the traces after HTA's parser and filter; every other answer of this mode starts there.
#include <algorithm>
#include <map>
#include <set>

#include "compat/compat.h"
#include "compat/hta/stats.h"

namespace stepscope::compat::hta {
namespace {

Table counted(std::string_view name, TableColumn key, std::string_view meaning) {
  return {.name = std::string(name), .columns = {whole("rank", "Rank"), std::move(key), whole("rows", meaning)}};
}

Result<Answer> run_trace_table(const Input& input) {
  const Tables& tables = input.tables();
  Answer answer;
  answer.scalars.push_back(
      {"min_ts", tables.min_ts, Unit::none, "Earliest start of all ranks, us, subtracted from all"});
  Table ranks{.name = "ranks",
              .columns = {whole("rank", "Rank"), whole("rows", "Events kept"),
                          number("duration_us", "Last start - first start")}};
  Table categories = counted("categories", words("category", "Category"), "Its events");
  Table streams = counted("streams", whole("stream", "Stream; -1: none"), "Its events");
  Table iterations{.name = "iterations", .columns = {whole("rank", "Rank"), whole("iteration", "Profiler step")}};
  for (const EventTable& table : tables.ranks) {
    std::map<std::string_view, std::int64_t> by_category;
    std::map<std::int64_t, std::int64_t> by_stream;
    std::set<std::int64_t> steps;
    for (const Row& row : table.rows()) {
      by_category[table.category(row)]++;
      by_stream[row.stream]++;
      if (row.iteration >= 0) steps.insert(row.iteration);
    }
    const std::int64_t rank = table.rank();
    ranks.rows.push_back({rank, static_cast<std::int64_t>(table.rows().size()), table.duration()});
    for (const auto& [category, rows] : by_category) categories.rows.push_back({rank, std::string(category), rows});
    for (const auto& [stream, rows] : by_stream) streams.rows.push_back({rank, stream, rows});
    for (const std::int64_t step : steps) iterations.rows.push_back({rank, step});
  }
  answer.tables = {std::move(ranks), std::move(categories), std::move(streams), std::move(iterations)};
  return answer;
}

}  // namespace

Analysis trace_table_analysis() { return {"trace_table", "Which events does HTA analyze?", run_trace_table}; }

}  // namespace stepscope::compat::hta
