// The shortcut gives what SQLite gives: the same statement goes both ways, over a hand-made run and over real traces.
#include <doctest/doctest.h>

#include <random>

#include "model/trace_fixture.h"
#include "query/grouped_select.h"
#include "query/query_fixture.h"
#include "session/run_fixture.h"

namespace stepscope::query {
namespace {

Run two_ranks() {
  Run run;
  for (std::int64_t rank : {0, 3}) {
    TraceFixture f;
    f.trace.rank.rank = rank;
    const TrackId cpu = f.host("1"), gpu = f.stream("7");
    for (int i = 0; i < 40; i++) {
      const std::string name = "op" + std::to_string(i % (rank == 0 ? 5 : 7));
      f.op(cpu, name, i * 100, i * 3 % 17, {.external_id = i % 3 == 0 ? kAbsent : i % 4});
      f.launch(cpu, "cudaLaunchKernel", i * 100 + 1, 2, i);
      f.kernel(gpu, "gemm_" + std::to_string(i % 3), i * 100 + 5, 50 - i, i);
    }
    f.device(gpu, "gpu_memcpy", "Memcpy HtoD", 9'000, 7);
    run.traces.push_back(std::move(f.trace));
  }
  return run;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine_); }
  bool chance(std::size_t one_in) { return below(one_in) == 0; }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

 private:
  std::mt19937 engine_;
};

std::string literal(const Value& value) {
  std::string text = text_of(value);
  if (!std::holds_alternative<std::string>(value)) return text;
  for (std::size_t at = 0; (at = text.find('\'', at)) != text.npos; at += 2) text.insert(at, 1, '\'');
  return "'" + text + "'";
}

// Statements of the simple shape about one table, with constants that occur in it.
class Statements {
 public:
  Statements(const Run& run, const ModelTable& table, unsigned seed) : run_(run), table_(table), random_(seed) {}

  std::string next() {
    std::vector<std::string> items, group;
    for (std::size_t i = random_.below(3); i > 0; i--)
      group.push_back(column([](ValueType t) { return t != ValueType::real; }));
    for (const auto& name : group) items.push_back(name);
    for (std::size_t i = random_.below(3) + (items.empty() ? 1 : 0); i > 0; i--) items.push_back(value());
    std::string sql = "select " + joined(items) + " from " + table_.name;
    if (random_.chance(2)) sql += " where " + condition() + (random_.chance(2) ? " and " + condition() : "");
    if (!group.empty()) sql += " group by " + joined(group);
    if (!group.empty() && random_.chance(3)) {
      sql += " having " + aggregate() + random_.of<std::string>({" > ", " <= ", " <> "}) +
             std::to_string(random_.below(3)) + (random_.chance(2) ? " or count(*) % 2 = 1" : "");
    }
    if (random_.chance(2)) {  // the groups last, because rows that compare equal may stand in any order
      sql += " order by " + std::to_string(random_.below(items.size()) + 1) + (random_.chance(2) ? " desc" : "");
      for (std::size_t i = 0; i < group.size(); i++) sql += ", " + std::to_string(i + 1);
    }
    if (random_.chance(3)) sql += " limit " + std::to_string(random_.below(20));
    return sql;
  }

 private:
  static std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
  }

  template <class Wanted>
  std::string column(Wanted wanted) {
    for (;;) {
      const auto& spec = random_.of(table_.spec->columns);
      if (wanted(tables::value_type(spec))) return "\"" + std::string(spec.name) + "\"";
    }
  }

  // What people make of aggregates.
  std::string value() {
    switch (random_.below(6)) {
      case 0: return "round(" + aggregate() + " / 1e3, 1)";
      case 1: return aggregate() + " * 2 - " + aggregate();
      case 2: return "coalesce(" + aggregate() + ", -1)";
      case 3: return "case when " + aggregate() + " > 2 then 'many' else 'few' end";
      default: return aggregate();
    }
  }

  std::string aggregate() {
    if (random_.chance(4)) return "count(*)";
    if (random_.chance(5)) return "count(distinct " + column([](ValueType t) { return t != ValueType::real; }) + ")";
    if (random_.chance(2))
      return random_.of<std::string>({"min", "max", "count"}) + "(" + column([](ValueType) { return true; }) + ")";
    return random_.of<std::string>({"sum", "avg", "total"}) + "(" +
           column([](ValueType t) { return t != ValueType::text; }) + ")";
  }

  std::string condition() {
    const auto& spec = random_.of(table_.spec->columns);
    const std::string name = "\"" + std::string(spec.name) + "\"";
    const Value value = some_value(spec), other = some_value(spec);
    if (std::holds_alternative<std::monostate>(value) || std::holds_alternative<std::monostate>(other)) {
      return name + (random_.chance(2) ? " is null" : " is not null");
    }
    if (random_.chance(5))
      return name + (random_.chance(2) ? " in (" : " not in (") + literal(value) + ", " + literal(other) + ")";
    if (random_.chance(5)) return name + " between " + literal(value) + " and " + literal(other);
    if (std::holds_alternative<std::string>(value) && random_.chance(2)) {
      return name + " like '%" + std::get<std::string>(value).substr(0, 2) + "%'";
    }
    const bool off = std::holds_alternative<std::int64_t>(value) && random_.chance(4);
    return name + " " + random_.of<std::string>({"=", "<>", "<", "<=", ">", ">="}) + " " + literal(value) +
           (off ? ".5" : "");
  }

  Value some_value(const tables::ColumnSpec& spec) {
    const std::vector<Trace>& traces = run_.*table_.spec->traces;
    if (traces.empty()) return {};
    const Trace& trace = random_.of(traces);
    const std::size_t rows = table_.spec->rows(trace);
    if (rows == 0) return {};
    const Value value = tables::ColumnReader(spec, trace).value(random_.below(rows));
    if (const auto* truth = std::get_if<bool>(&value)) return std::int64_t{*truth};
    const auto* text = std::get_if<std::string>(&value);
    return text != nullptr && text->find_first_of("%_") != text->npos
               ? Value(text->substr(0, text->find_first_of("%_")))
               : value;
  }

  const Run& run_;
  const ModelTable& table_;
  Random random_;
};

// Both ways agree; most statements must have taken the shortcut, else the test would compare SQLite with itself.
void check_both_ways(const Run& run, int rounds) {
  int shortcuts = 0, asked = 0;
  for (const ModelTable& table : model_table_list()) {
    Statements statements(run, table, 7);
    for (int i = 0; i < rounds; i++) {
      const std::string sql = statements.next();
      const Asked fast = ask(source_of(run), sql);
      const Asked plain = ask(source_of(run), sql, {.shortcut = false});
      CAPTURE(sql);
      CHECK_EQ(fast.text, plain.text);
      const bool overflow = plain.text.find("integer overflow") != std::string::npos;  // of sums of times
      CHECK((!plain.failed || overflow));
      asked++;
      shortcuts += fast.shortcut ? 1 : 0;
    }
  }
  CHECK_GT(shortcuts, asked * 8 / 10);
}

}  // namespace

TEST_CASE("shortcut: random statements give what SQLite gives on a hand-made run") { check_both_ways(two_ranks(), 60); }

TEST_CASE("shortcut: random statements give what SQLite gives on real traces") {
  if (!corpus_fixture::has_corpus()) return;
  for (const char* name : {"hta/nccl_parser_config", "hta/amd_trace", "hta/mtia_inference_trace", "hta/cpu_only"}) {
    check_both_ways(corpus_fixture::opened(corpus_fixture::corpus() / name), 12);
  }
}

TEST_CASE("shortcut: the shape that it takes, and what it leaves to SQLite") {
  for (const char* sql :
       {"select count(*) from slices",
        "SELECT Name, COUNT(*) AS n FROM Slices GROUP BY name ORDER BY n DESC, 1 LIMIT 3;",
        "select sum(dur_ns) total from kernels where name like 'g%' and dur_ns between 3 and 1e3",
        "select \"name\", max(start_ns) from ops where sequence is not null group by 1 order by max(start_ns)",
        "select name, sum(dur_ns) / 1e6 as ms from kernels group by name having count(*) > 1 order by ms desc",
        "select name n, round(100.0 * avg(dur_ns), 2) || ' %' from slices group by n order by count(distinct kind)",
        "select distinct name, kind from slices order by name limit 5 offset 2",
        "select cast(count(*) as real) / count(distinct name) from slices",
        "select case when kind in ('kernel', 'memcpy') then 'device' else 'host' end where_, count(*) from slices"
        " group by kind"}) {
    CAPTURE(sql);
    CHECK(parse_grouped_select(sql));
  }
  for (const char* sql : {"select name from slices",
                          "select name, count(*) from slices",
                          "select count(*) from slices s",
                          "select count(*) from slices, ops",
                          "select count(*) from issues",
                          "select sum(name) from slices",
                          "select count(*) from slices where name = 3",
                          "select count(*) from slices where name like 'a' escape 'b'",
                          "select count(*) from slices where dur_ns = '3'",
                          "select count(*) from slices where dur_ns > 1 or dur_ns < 0",
                          "select dur_ns as name, count(*) from slices group by dur_ns order by name",
                          "select count(*) from slices -- all",
                          "select count(*) /* all */ from slices",
                          "select max(dur_ns, 3) from slices group by dur_ns",
                          "select sum(dur_ns + 1) from slices",
                          "select *, count(*) from slices group by name",
                          "select group_concat(name), count(*) from slices",
                          "select count(*) from slices having count(*) > 1",
                          "select sum(dur_ns) over () from slices",
                          "select count(*) filter (where dur_ns > 1) from slices",
                          "select distinct name, count(*) from slices",
                          "select (select 1), count(*) from slices",
                          "select \"nothing\", count(*) from slices",
                          "select name, count(*) from slices group by lower(name)"}) {
    CAPTURE(sql);
    CHECK_FALSE(parse_grouped_select(sql));
  }
}

TEST_CASE("shortcut: what people write, both ways") {
  const Run run = two_ranks();
  for (const char* sql :
       {"select name, count(*) n, sum(dur_ns)/1e3 as us from kernels group by name having n > 5 order by us desc",
        "select name, sum(dur_ns) / count(*) from slices group by name order by sum(dur_ns) - min(dur_ns), name",
        "select rank, count(distinct name), count(distinct external_id) from ops group by rank",
        "select distinct name from slices order by name desc limit 3 offset 1",
        "select printf('%d of %d', count(launch), count(*)) as linked from kernels",
        "select kind || '!', cast(avg(dur_ns) as integer) from slices group by kind order by kind",
        "select name, max(dur_ns) from slices where dur_ns > 3 group by name having max(dur_ns) > '5' order by name",
        "select name, count(*) from slices group by name having name like '%gemm%' or count(*) % 2 = 0 order by name",
        "select -sum(dur_ns), +count(*), not count(*) from slices", "select count(*) from slices limit 0",
        "select sum(dur_ns) as \"a \"\"b\" from kernels"}) {
    CAPTURE(sql);
    const Asked fast = ask(source_of(run), sql);
    CHECK(fast.shortcut);
    CHECK_EQ(fast.text, ask(source_of(run), sql, {.shortcut = false}).text);
  }
}

TEST_CASE("shortcut: the first rows by a number") {
  const Run run = two_ranks();
  for (const char* sql :
       {"select rank, slice, dur_ns from kernels order by dur_ns desc, rank, slice limit 7",
        "select * from slices where kind = 'cpu_op' order by dur_ns, rank, slice limit 10 offset 3",
        "select name, start_ns + dur_ns as e from slices order by start_ns desc, rank, slice limit 2;",
        "select rank, slice from ops order by external_id desc, rank, slice limit 5"}) {
    CAPTURE(sql);
    const Asked fast = ask(source_of(run), sql);
    CHECK(fast.shortcut);
    CHECK_EQ(fast.text, ask(source_of(run), sql, {.shortcut = false}).text);
  }
  for (const char* sql : {"select rank, slice from ops order by external_id, rank, slice limit 5",  // null comes first
                          "select rank, slice from ops order by external_id desc, rank, slice limit 500",
                          "select slice, -dur_ns as dur_ns from slices order by dur_ns desc, 1 limit 3",
                          "select name from slices order by name limit 3", "select dur_ns from slices limit 3"}) {
    CAPTURE(sql);
    const Asked fast = ask(source_of(run), sql);
    CHECK_FALSE(fast.shortcut);
    CHECK_EQ(fast.text, ask(source_of(run), sql, {.shortcut = false}).text);
  }
}

TEST_CASE("shortcut: a sum that does not fit is told, not wrapped") {
  TraceFixture f;
  const TrackId cpu = f.host("1");
  f.op(cpu, "a", INT64_MAX - 5, 1);
  f.op(cpu, "b", INT64_MAX - 6, 1);
  Run run;
  run.traces.push_back(std::move(f.trace));
  const Asked asked = ask(source_of(run), "select sum(start_ns) from slices");
  CHECK(asked.failed);
  CHECK_NE(asked.text.find("integer overflow"), std::string::npos);
}

}  // namespace stepscope::query
