// query_file PATH…: the seconds that SQL statements take over an opened run, with the shortcut and through SQLite
// alone.
//
// One JSON object a line: {"sql", "rows", "shortcut_s", "sqlite_s"}; the first line tells of the run.
#include <fmt/format.h>

#include <chrono>

#include "query/query.h"
#include "report/json_writer.h"
#include "session/session.h"

namespace {

using namespace stepscope;

constexpr const char* kStatements[] = {
    "select count(*) from slices",
    "select sum(dur_ns), min(start_ns), max(dur_ns) from slices",
    "select name, count(*), sum(dur_ns) from slices group by name order by 3 desc limit 20",
    "select kind, name, count(*), sum(dur_ns), avg(dur_ns) from slices group by kind, name order by 4 desc limit 20",
    "select rank, track, count(*), sum(dur_ns) from slices where dur_ns > 1000 group by rank, track",
    "select name, count(*), sum(dur_ns) from kernels where name like '%gemm%' group by name order by 3 desc",
    "select stream, class, count(*), sum(dur_ns) from device_work group by stream, class",
};

double seconds(const query::Source& source, const char* sql, bool shortcut, std::uint64_t& rows) {
  query::Limits limits;
  limits.seconds = 600;
  limits.shortcut = shortcut;
  query::TableSink sink;
  const auto start = std::chrono::steady_clock::now();
  const auto outcome = query::run_query(source, sql, limits, sink);
  if (!outcome) fmt::print(stderr, "query_file: {}\n", to_text(outcome.error()));
  if (outcome) rows = outcome->rows;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> paths(argv + 1, argv + argc);
  const auto run = session::open(paths, {});
  if (!run) {
    fmt::print(stderr, "query_file: {}\n", to_text(run.error()));
    return 1;
  }
  std::size_t slices = 0;
  for (const Trace& trace : run->traces) slices += trace.slices.size();
  fmt::print("{{\"ranks\": {}, \"slices\": {}}}\n", run->traces.size(), slices);
  const query::Source source{&*run, {}, {}};
  for (const char* sql : kStatements) {
    std::uint64_t rows = 0;
    const double fast = seconds(source, sql, true, rows), plain = seconds(source, sql, false, rows);
    report::JsonWriter json;
    json.begin_object(report::JsonWriter::Layout::line).key("sql").text(sql).key("rows").number(rows);
    json.key("shortcut_s").number(fast).key("sqlite_s").number(plain).end_object();
    fmt::print("{}\n", json.take());
  }
}
