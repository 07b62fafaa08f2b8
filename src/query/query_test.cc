// SQL over hand-made runs: tables, joins, answers, limits, and statements that mean harm.
#include "query/query.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "model/trace_fixture.h"
#include "query/query_fixture.h"
#include "session/session.h"

namespace stepscope::query {
namespace {

Run small_run() {
  Run run;
  for (std::int64_t rank : {0, 1}) {
    TraceFixture f;
    f.trace.rank.rank = rank;
    const TrackId cpu = f.host("1"), gpu = f.stream("7");
    for (int i = 0; i < 5; i++) {
      f.launch(cpu, "cudaLaunchKernel", i * 100, 5, 10 + i);
      f.kernel(gpu, "kernel_" + std::to_string(i), i * 100 + 50, 10 * i + rank, 10 + i);
    }
    f.device(gpu, "gpu_memcpy", "Memcpy DtoH", 900, 3, 99);
    run.traces.push_back(std::move(f.trace));
  }
  return run;
}

bool says(const Asked& asked, std::string_view words) { return asked.text.find(words) != std::string::npos; }

Asked ask_small(const std::string& sql, const Limits& limits = {}) {
  const Run run = small_run();
  return ask(source_of(run), sql, limits);
}

}  // namespace

TEST_CASE("query: rows of all ranks, and of one") {
  const Run run = small_run();
  CHECK_EQ(rows(run, "select rank, name, dur_ns from kernels where dur_ns >= 30 order by rank, dur_ns"),
           "0|kernel_3|30|\n0|kernel_4|40|\n1|kernel_3|31|\n1|kernel_4|41|\n");
  CHECK_EQ(rows(run, "select slice from slices where rank = 1 and slice between 3 and 5"), "3|\n4|\n5|\n");
  CHECK_EQ(rows(run, "select name from slices where rank = 1 and slice = 10"), "Memcpy DtoH|\n");
  CHECK_EQ(rows(run, "select name from slices where rank = 2"), "");
  CHECK_EQ(rows(run, "select slice from device_work where rank = 0 and slice > 5 and slice < 10"), "7|\n9|\n");
  CHECK_EQ(rows(run, "select slice from slices where slice = '4' and rank = '1'"), "4|\n");
  CHECK_EQ(rows(run, "select distinct launch is null from kernels"), "1|\n");
}

TEST_CASE("query: a join finds the same rows with and without an index") {
  const Run run = small_run();
  const std::string join = " on l.rank = d.rank and l.correlation = d.correlation ";
  CHECK_EQ(rows(run, "select count(*), sum(d.slice - l.slice) from launches l join kernels d" + join), "10|10|\n");
  CHECK_EQ(rows(run, "select count(*) from launches l join device_work d" + join + "where d.kind <> 'kernel'"), "0|\n");
  CHECK_EQ(rows(run, "select count(*) from launches l left join device_work d" + join + "where d.rank is null"),
           "0|\n");
  CHECK_EQ(rows(run, "select count(*) from kernels a join kernels b on a.name = b.name"), "20|\n");
  CHECK_EQ(rows(run,
                "select s.name from kernels k join slices s on s.rank = k.rank and s.slice = k.slice "
                "where k.dur_ns = 41"),
           "kernel_4|\n");
}

TEST_CASE("query: answers are made only when a statement names one of their tables") {
  const Run run = small_run();
  std::vector<std::string> made;
  Source source = source_of(run);
  source.answers = {"idle", "steps"};
  source.answer = [&](const std::string& name) -> Result<std::shared_ptr<const Answer>> {
    made.push_back(name);
    if (name == "steps") return fail({ErrorKind::unsupported, "no steps here", "", std::nullopt, ""});
    Answer answer;
    answer.name = name;
    answer.scalars.push_back({"idle_ns", Value(std::int64_t{7}), Unit::ns, "All of it."});
    answer.tables.push_back(
        {"causes", {{"cause"}, {"share", ValueType::real}}, {{std::string("data"), 0.5}, {{}, {}}}});
    answer.series.push_back({"busy", Unit::ratio, {1, 2}, {0.25, NAN}});
    return std::make_shared<const Answer>(std::move(answer));
  };
  CHECK_FALSE(ask(source, "select * from steps").failed);  // a table of the model
  CHECK(made.empty());
  CHECK_EQ(ask(source, "select * from idle_causes").text, "cause|share|\ndata|0.5|\nnull|null|\n");
  CHECK_EQ(ask(source, "select v from Idle_Series_Busy a join idle_scalars b").text, "v|\n0.25|\nnull|\n");
  CHECK_EQ(made, std::vector<std::string>{"idle", "idle"});  // once a statement, however many of its tables
  CHECK(says(ask(source, "select * from idle_cause"), "did you mean 'idle_causes'?"));
  CHECK(says(ask(source, "select * from idle.causes"), "did you mean 'idle_causes'?"));
  CHECK(says(ask(source, "select * from steps_all"), "no steps here"));
  CHECK(says(ask(source, ".tables"), "idle_series_busy|2|"));
  CHECK(says(ask(source, ".schema idle_causes"), "idle_causes|share|real|"));
}

TEST_CASE("query: errors name the place and what was meant") {
  CHECK(says(ask_small("select nam from slices"), "unknown column 'nam' at character 8; did you mean 'name'?") ==
        false);
  CHECK(says(ask_small("select nam from slices"), "did you mean 'name'?"));
  CHECK(says(ask_small("select 1\nfrom slicez"), "did you mean 'slices'?"));
  CHECK(says(ask_small("select name\nfrom slices\nwhere durns = 1"), "line 3, character 7: unknown column"));
  CHECK(says(ask_small("selekt 1"), "syntax error"));
  CHECK(says(ask_small(""), "the statement is empty"));
  CHECK(says(ask_small(".table"), "did you mean '.tables'?"));
  CHECK(says(ask_small(".schema kernel"), "did you mean 'kernels'?"));
  CHECK(says(ask_small(std::string("select 1\0", 9)), "NUL"));
  CHECK(says(ask_small(std::string(1'000'001, ' ')), "longer than a million"));
}

TEST_CASE("query: nothing but reading") {
  const auto file = std::filesystem::temp_directory_path() / "stepscope_query_test.db";
  std::filesystem::remove(file);
  for (const std::string& sql : std::vector<std::string>{"attach '" + file.string() + "' as x",
                                                         "vacuum into '" + file.string() + "'",
                                                         "create table t(a)",
                                                         "create temp table t(a)",
                                                         "create virtual table t using slices",
                                                         "create view v as select 1",
                                                         "insert into slices(name) values('x')",
                                                         "update slices set name = 'x'",
                                                         "delete from slices",
                                                         "drop table slices",
                                                         "begin",
                                                         "savepoint a",
                                                         "pragma journal_mode = wal",
                                                         "pragma writable_schema = 1",
                                                         "pragma hard_heap_limit = 0",
                                                         "pragma temp_store_directory = '/'",
                                                         "select load_extension('x.so')",
                                                         "select fts3_tokenizer('simple')",
                                                         "select readfile('/etc/passwd')",
                                                         "select writefile('/tmp/x', 'y')",
                                                         "insert into sqlite_master values(1, 2, 3, 4, 5)",
                                                         "update sqlite_master set sql = ''",

                                                         "analyze",
                                                         "detach main",
                                                         "select 1; delete from slices",
                                                         "explain delete from slices"}) {
    const Asked asked = ask_small(sql);
    CAPTURE(sql);
    CHECK(asked.failed);
  }
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(says(ask_small("attach 'a' as b"), "only SELECT is allowed"));
  CHECK_FALSE(ask_small("pragma table_info(kernels)").failed);
  CHECK_FALSE(ask_small("explain query plan select * from slices").failed);
}

TEST_CASE("query: bombs end at their limit") {
  const Limits limits{.seconds = 0.2, .memory_bytes = 32 << 20};
  const std::string endless = "with recursive c(x) as (select 1 union all select x + 1 from c) ";
  CHECK(says(ask_small(endless + "select count(*) from c", limits), "longer than its limit of 0.2 s"));
  CHECK(says(
      ask_small("select count(*) from slices a, slices b, slices c, slices d, slices e, slices f, slices g", limits),
      "longer than its limit"));
  const Limits little{.seconds = 60, .memory_bytes = 32 << 20};
  CHECK(says(
      ask_small(endless + "select x, hex(randomblob(1000)) h from c limit 100000000 offset 99999999", {.seconds = 0.2}),
      "longer than its limit"));
  CHECK(says(
      ask_small(endless + "select * from (select x, hex(randomblob(1000)) h from c limit 1000000) order by h", little),
      "more memory than its limit of 32 MiB"));
  CHECK(says(ask_small("select zeroblob(1000000000)"), "longer than 64 MiB"));
  CHECK(says(ask_small("select group_concat(hex(randomblob(9000000))) from slices"), "longer than 64 MiB"));
  std::string deep = "select ";
  for (int i = 0; i < 5000; i++) deep += "(";
  CHECK(ask_small(deep + "1").failed);
  CHECK_FALSE(ask_small("select 1").failed);  // the limits of one query are not those of the next
}

TEST_CASE("query: rows are cut at the limit, and that is told") {
  const Asked asked = ask_small("select slice from slices where rank = 0", {.rows = 3});
  CHECK_EQ(asked.text, "slice|\n0|\n1|\n2|\n");
  CHECK(asked.cut);
  CHECK_FALSE(ask_small("select slice from slices where rank = 0 limit 3", {.rows = 3}).cut);
}

TEST_CASE("query: the sink of tables gives each column one type") {
  const Run run = small_run();
  TableSink sink;
  REQUIRE(run_query(source_of(run), "select 1 a, 'x' b, null c, 1 d, 1 e union all select 2, 'y', null, 0.5, 'z'", {},
                    sink));
  const Table table = sink.take();
  CHECK_EQ(table.columns[0].type, ValueType::integer);
  CHECK_EQ(table.columns[1].type, ValueType::text);
  CHECK_EQ(table.columns[3].type, ValueType::real);
  CHECK_EQ(table.columns[4].type, ValueType::text);
  CHECK_EQ(table.rows[0][4], Value(std::string("1")));
}

TEST_CASE("query: every recipe runs, and each has a sentence") {
  const std::filesystem::path traces = std::filesystem::path(__FILE__).parent_path() / "../../tests/traces";
  const std::vector<std::string> paths{(traces / "tiny_train.json").string()};
  session::OpenOptions options;
  options.use_cache = false;
  const auto run = session::open(paths, options);
  REQUIRE(run);
  for (const Recipe& recipe : recipes()) {
    CAPTURE(recipe.name);
    CHECK(recipe.sentence.ends_with('.'));
    CHECK(recipe_named(recipe.name));
    const Asked asked = ask(source_of(*run), std::string(recipe.sql));
    CHECK_MESSAGE(!asked.failed, asked.text);
  }
  const auto recipe_rows = [&](std::string_view name) { return rows(*run, std::string(recipe_named(name)->sql)); };
  CHECK_EQ(recipe_rows("copies_by_direction"), "Memcpy HtoD (Pinned -> Device)|3|3145728|150000|20.97152|\n");
  CHECK(recipe_rows("kernel_sums").starts_with("sm80_xmma_gemm"));
  CHECK(recipe_rows("device_time_by_op").starts_with("aten::mm|6|1800000|\n"));
  CHECK(recipe_rows("steps").starts_with("0|0|ProfilerStep#3|1000000|1000000|0|\n"));
  CHECK(recipe_rows("idle_gaps").starts_with("0|0|20|5870000|800000|"));
  CHECK_FALSE(recipe_named("kernel_sum"));
}

}  // namespace stepscope::query
