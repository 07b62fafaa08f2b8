// The answers on real traces: figures that were measured independently, and what must hold for every trace.
// Needs the traces of other projects ($STEPSCOPE_CORPUS, else ../shared/data); skipped with a message without them.
#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "session/run_fixture.h"

namespace stepscope {
namespace {

using namespace corpus_fixture;

TEST_CASE("corpus: DeepSeek's expert-parallel communication, hidden and exposed") {
  if (!has_corpus()) return;
  const Report report = report_of({corpus() / "deepseek/train.json"});
  CHECK(ns(report, "communication", "span_ns") == 129'012'000);
  CHECK(ns(report, "communication", "communication_span_ns") == 113'440'000);
  CHECK(ns(report, "communication", "communication_exposed_span_ns") == 4'190'000);
  CHECK(real(report, "communication", "communication_hidden_ratio") == doctest::Approx(0.963).epsilon(0.0005));
  CHECK(ns(report, "overview", "compute_span_ns") == 124'310'000);
  CHECK(ns(report, "idle", "idle_span_ns") == 497'000);  // as HTA
  CHECK(real(report, "kernels", "family_share") >= 0.9);
}

TEST_CASE("corpus: exact sums and unions") {
  if (!has_corpus()) return;
  const Report precise = report_of({corpus() / "hta/ns_resolution_trace"}, {"kernels"});
  CHECK(ns(precise, "kernels", "device_event_count") == 6095);
  CHECK(ns(precise, "kernels", "device_time_ns") == 472'454'441);
  const Report diff = report_of({corpus() / "hta/trace_diff/test/test.json.gz"}, {"overview"});
  CHECK(ns(diff, "overview", "span_ns") == 745'239'000);
  CHECK(ns(diff, "overview", "busy_span_ns") == 717'943'000);
  CHECK(ns(diff, "overview", "idle_span_ns") == 27'296'000);
  CHECK(ns(diff, "overview", "communication_span_ns") == 251'341'000);
}

// HTA 0.6.1 with the last step kept, on traces in whole µs where its filters drop nothing and no wait counts as busy.
TEST_CASE("corpus: where the definitions agree, HTA's figures") {
  if (!has_corpus()) return;
  struct Reference {
    std::string path;
    Ns idle_us, span_us;
    double overlap_percent;
  };
  for (const Reference& hta : {
           Reference{"hta/df_index_resolver/df_index_resolver.json.gz", 732'352, 1'732'965, 0.0},
           Reference{"hta/trace_filter/sampled_rank-0.json.gz", 675'191, 1'222'847, 14.95},
           Reference{"hta/trace_filter/sampled_rank-1.json.gz", 651'136, 1'231'186, 19.93},
       }) {
    CAPTURE(hta.path);
    const Report report = report_of({corpus() / hta.path}, {"overview"});
    CHECK(ns(report, "overview", "span_ns") == hta.span_us * 1000);
    CHECK(ns(report, "overview", "idle_span_ns") == hta.idle_us * 1000);
    CHECK(std::abs(real(report, "overview", "communication_hidden_ratio") * 100 - hta.overlap_percent) < 0.00501);
  }
}

// On a trace in ns HTA rounds starts up and ends down to whole µs: every kernel loses up to 2 µs, so HTA sees less
// busy time and more idle time, never the other way round.
TEST_CASE("corpus: exact nanoseconds against HTA's rounding") {
  if (!has_corpus()) return;
  const Report report = report_of({corpus() / "hta/nccl_parser_config/nccl_data.json.gz"}, {"overview", "kernels"});
  const Ns idle = ns(report, "overview", "idle_span_ns"), events = ns(report, "kernels", "device_event_count");
  CHECK(std::abs(ns(report, "overview", "span_ns") - 660'550'000) <= 2'000);
  CHECK(idle < 506'512'000);
  CHECK(idle > 506'512'000 - 2'000 * events);
}

void check_step_parts(const Report& report) {
  const Table& steps = *answer_of(report, "steps").table("steps");
  const std::size_t wall = column(steps, "wall_ns"), first = column(steps, "kernel_ns");
  for (const auto& row : steps.rows) {
    Ns sum = 0;
    for (std::size_t part = first; part < row.size(); part++) {
      const Ns value = std::get<Ns>(row[part]);
      if (value < 0) FAIL("a part of a step is negative");
      sum += value;
    }
    if (sum != std::get<Ns>(row[wall])) FAIL("the parts of a step do not add up");
  }
}

void check_idle(const Report& report) {
  const Answer& idle = answer_of(report, "idle");
  const Value* whole = &idle.scalar("idle_span_ns")->value;
  if (!std::holds_alternative<Ns>(*whole)) return;
  const Table& causes = *idle.table("causes");
  std::map<std::pair<Ns, std::string>, Ns> devices;
  Ns sum = 0;
  for (const auto& row : causes.rows) sum += std::get<Ns>(row[column(causes, "idle_span_ns")]);
  if (answer_of(report, "utilization").table("devices")->rows.size() == 1) CHECK(sum == std::get<Ns>(*whole));
}

void check_shares(const Report& report) {
  for (const Answer& answer : report.answers) {
    CHECK_FALSE(answer.summary.empty());
    for (const Table& table : answer.tables) {
      for (const auto& row : table.rows) {
        REQUIRE(row.size() == table.columns.size());
        for (std::size_t i = 0; i < row.size(); i++) {
          if (const double* value = std::get_if<double>(&row[i])) {
            if (!std::isfinite(*value) || *value < 0) FAIL(answer.name, ".", table.name, ".", table.columns[i].name);
          }
          if (const Ns* value = std::get_if<Ns>(&row[i]); value != nullptr && *value < 0 &&
                                                          table.columns[i].name.find("_ns") != std::string::npos &&
                                                          table.columns[i].name != "start_ns") {
            FAIL(answer.name, ".", table.name, ".", table.columns[i].name, " is negative");
          }
        }
      }
    }
  }
}

TEST_CASE("corpus: what holds for the answers on every trace") {
  if (!has_corpus()) return;
  int traces = 0;
  for (const auto& entry : fs::recursive_directory_iterator(corpus() / "hta")) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.find("json") == name.npos || name.find("_et.") != name.npos) continue;
    CAPTURE(name);
    const Report report = report_of({entry.path()});
    CHECK(report.answers.size() == session::answer_names().size());
    check_step_parts(report);
    check_idle(report);
    check_shares(report);
    traces++;
  }
  CHECK(traces >= 28);
}

}  // namespace
}  // namespace stepscope
