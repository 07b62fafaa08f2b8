// The answers about one rank on real traces, against figures of others where definitions agree.
// Needs the traces of other projects ($STEPSCOPE_CORPUS, else ../shared/data); skipped with a message without them.
#include <doctest/doctest.h>

#include "session/run_fixture.h"

namespace stepscope {
namespace {

using namespace corpus_fixture;

const Table& table_of(const Report& report, std::string_view answer, std::string_view name) {
  const Table* table = answer_of(report, answer).table(name);
  REQUIRE_MESSAGE(table != nullptr, name);
  return *table;
}

// HTA counts two points a launch: 1854, 32 and 80 of them, at most 216, 4 and 7 waiting.
TEST_CASE("corpus: launches and queues of DeepSeek's step, as HTA counts them") {
  if (!has_corpus()) return;
  const Report report = report_of({corpus() / "deepseek/train.json"}, {"launches"});
  CHECK(ns(report, "launches", "launch_count") == 983);  // HTA: 943, it does not know cuLaunchKernel
  const Table& queues = table_of(report, "launches", "queues");
  REQUIRE(queues.rows.size() == 3);
  const std::size_t launches = column(queues, "launches"), longest = column(queues, "max_length");
  CHECK(queues.rows[0][launches] == Value(Ns{1854 / 2}));
  CHECK(queues.rows[1][launches] == Value(Ns{32 / 2}));
  CHECK(queues.rows[2][launches] == Value(Ns{80 / 2}));
  CHECK(queues.rows[0][longest] == Value(Ns{216}));
  CHECK(queues.rows[1][longest] == Value(Ns{4}));
}

TEST_CASE("corpus: a graph launch counts once, with all its kernels") {
  if (!has_corpus()) return;
  const Report report = report_of({corpus() / "hta/trace_diff/test/test.json.gz"}, {"launches"});
  const Table& calls = table_of(report, "launches", "calls");
  const std::size_t name = column(calls, "call"), work = column(calls, "work_count"), all = column(calls, "count");
  Ns graphs = 0;
  for (const auto& row : calls.rows) {
    if (row[name] != Value(std::string("cudaGraphLaunch"))) continue;
    graphs++;
    CHECK(row[all] == Value(Ns{12}));
    CHECK(row[work] == Value(Ns{5046}));
  }
  CHECK(graphs == 1);
}

TEST_CASE("corpus: where launch calls blocked, the queue was full") {
  if (!has_corpus()) return;
  const Report report = report_of({corpus() / "hta/ns_resolution_trace"}, {"launches"});
  CHECK(ns(report, "launches", "slow_count") > 900);  // HTA: 921 above 50 µs, after rounding
  CHECK(ns(report, "launches", "queue_full_ns") > 200'000'000);
}

// Every copy of the trace, summed by hand: HTA's summary has one row of DtoD copies and one of fills, 1603 and 145.
TEST_CASE("corpus: copies by direction") {
  if (!has_corpus()) return;
  const Report report = report_of({corpus() / "hta/ns_resolution_trace"}, {"copies"});
  CHECK(ns(report, "copies", "copy_count") == 1'745);
  const Table& directions = table_of(report, "copies", "directions");
  const std::size_t way = column(directions, "direction"), all = column(directions, "count");
  REQUIRE(directions.rows.size() >= 2);
  Ns copies = 0;
  for (const auto& row : directions.rows) {
    if (row[way] == Value(std::string("set"))) CHECK(row[all] == Value(Ns{145}));
    if (row[way] != Value(std::string("set"))) copies += std::get<Ns>(row[all]);
  }
  CHECK(copies == 1'600);
}

// The totals say what was held before the first event (in time; the file goes by thread); nothing of that is freed in
// this recording, so the part of the peak that no event explains must be just that.
TEST_CASE("corpus: pairs of allocation and free explain the peak") {
  if (!has_corpus()) return;
  const Report report = report_of({corpus() / "hta/df_index_resolver/df_index_resolver.json.gz"}, {"memory"});
  CHECK(ns(report, "memory", "event_count") == 28'010);
  CHECK(ns(report, "memory", "unknown_free_count") == 0);
  const Table& peak = table_of(report, "memory", "at_peak");
  const std::size_t device = column(peak, "device"), bytes = column(peak, "bytes"), phase = column(peak, "phase");
  Ns unexplained = 0;
  for (const auto& row : peak.rows) {
    if (row[device] == Value(std::string("cuda:1")) && row[phase] == Value()) unexplained = std::get<Ns>(row[bytes]);
  }
  CHECK(unexplained == 4'096'614'400);  // total of the first event in time less its own bytes
}

// Kineto spreads the ranges evenly over the recording; there are as many kernel launches.
TEST_CASE("corpus: hardware metrics with the operators above them") {
  if (!has_corpus()) return;
  const Report report = report_of({corpus() / "hta/cupti_profiler"}, {"counters"});
  CHECK(ns(report, "counters", "range_count") == 77);
  const Table& metrics = table_of(report, "counters", "metrics");
  const std::size_t op = column(metrics, "op"), ranges = column(metrics, "ranges");
  Ns measured = 0, addmm = 0;
  for (const auto& row : metrics.rows) {
    measured += std::get<Ns>(row[ranges]);
    if (row[op] == Value(std::string("aten::addmm"))) addmm++;
  }
  CHECK(measured == 77 * 9);  // nine metrics each
  CHECK(addmm > 0);           // AlexNet ends in linear layers
  CHECK(answer_of(report, "counters").notes.size() == 1);
}

}  // namespace
}  // namespace stepscope
