// Curves of the tables of steps, and the event files that hold them.
#include "write/step_scalars.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>

#include "base/temp_fixture.h"
#include "base/whole_file.h"
#include "formats/protobuf.h"
#include "formats/record_fixture.h"
#include "model/answer.h"
#include "model/trace_fixture.h"

namespace stepscope::write {
namespace {

using Points = std::map<std::int64_t, double>;  // by number of the step

constexpr std::int64_t kDay = 1'700'000'000'000'000'000;

Run run_of_steps(const std::vector<std::pair<std::string, std::int64_t>>& steps, std::int64_t base = kDay) {
  TraceFixture fixture;
  fixture.slice(fixture.host("1"), "cpu_op", "aten::mm", 0, 1);
  fixture.trace.clock_base_ns = base;
  std::int64_t at = 0;
  for (const auto& [name, number] : steps) {
    fixture.trace.steps.push_back({.name = name, .number = number, .start_ns = at, .end_ns = at + 1'000'000'000});
    at += 1'000'000'000;
  }
  Run run;
  run.traces.push_back(std::move(fixture.trace));
  return run;
}

Answer answer_of(std::vector<TableColumn> columns, std::vector<std::vector<Value>> rows) {
  Answer answer;
  answer.name = "some";
  answer.tables = {{.name = "steps", .columns = std::move(columns), .rows = std::move(rows)}};
  return answer;
}

const TableColumn kRank{"rank", ValueType::integer, Unit::none, "Rank"};
const TableColumn kStep{"step", ValueType::text, Unit::none, "Step"};
const TableColumn kWall{"wall_ns", ValueType::integer, Unit::ns, "How long it took"};

Points points(const StepScalars& scalars, std::string_view rank, std::string_view tag) {
  Points found;
  for (const RankScalars& one : scalars.ranks) {
    if (one.name != rank) continue;
    for (const ScalarStep& step : one.steps) {
      for (const auto& [curve, value] : step.values) {
        if (one.curves[curve].tag == tag) found[step.number] = value;
      }
    }
  }
  return found;
}

StepScalars scalars_of(const Run& run, const Answer& answer) { return step_scalars(run, std::span(&answer, 1)); }

bool tells(const StepScalars& scalars, std::string_view words) {
  return std::any_of(scalars.left_out.begin(), scalars.left_out.end(),
                     [&](const std::string& sentence) { return sentence.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("step scalars: measures of whole steps in SI units, unknown left out") {
  const Run run = run_of_steps({{"ProfilerStep#7", 7}, {"ProfilerStep#8", 8}, {"ProfilerStep#9", 9}});
  const Answer answer = answer_of({kRank,
                                   {"device", ValueType::text, Unit::none, "Device"},
                                   kStep,
                                   {"partial", ValueType::boolean, Unit::none, "Cut?"},
                                   {"start_ns", ValueType::integer, Unit::ns, "A moment"},
                                   kWall,
                                   {"peak_event", ValueType::integer, Unit::none, "A number of something"},
                                   {"bound", ValueType::text, Unit::none, "A word"},
                                   {"cores", ValueType::real, Unit::none, "Cores"},
                                   {"mfu", ValueType::real, Unit::ratio, "Never known"}},
                                  {{0, "cuda:0", "ProfilerStep#7", false, 1, 2'500'000'000, 3, "x", 1.5, Value()},
                                   {0, "cuda:0", "ProfilerStep#8", false, 1, Value(), 3, "x", 0.0, Value()},
                                   {0, "cuda:0", "ProfilerStep#9", true, 1, 9, 3, "x", 9.0, Value()}});
  const StepScalars scalars = scalars_of(run, answer);
  REQUIRE(scalars.ranks.size() == 1);
  CHECK(scalars.ranks[0].curves.size() == 2);
  CHECK(points(scalars, "rank0", "some/cuda:0/wall_s") == Points{{7, 2.5}});
  CHECK(points(scalars, "rank0", "some/cuda:0/cores") == Points{{7, 1.5}, {8, 0.0}});
  CHECK(scalars.ranks[0].steps[0].unix_ns == kDay + 1'000'000'000);  // when it ended
  CHECK(tells(scalars, "cuts them: 1 step"));
  CHECK(tells(scalars, "no curve: some/mfu;"));
  CHECK_FALSE(tells(scalars, "time of day"));
}

TEST_CASE("step scalars: steps that share a name are told apart by their order, where all are there") {
  const Run run = run_of_steps({{"round", 0}, {"round", 1}, {"alone", kAbsent}});
  const StepScalars all = scalars_of(run, answer_of({kRank, kStep, kWall}, {{0, "round", 1'000}, {0, "round", 2'000}}));
  CHECK(points(all, "rank0", "some/wall_s") == Points{{0, 1e-6}, {1, 2e-6}});
  const StepScalars one = scalars_of(run, answer_of({kRank, kStep, kWall}, {{0, "round", 1'000}, {0, "alone", 5}}));
  CHECK(one.ranks.empty());
  CHECK(tells(one, "no number: steps in some"));
}

TEST_CASE("step scalars: numbers of the table itself, and a step that is there twice") {
  const Answer answer = answer_of({kRank, {"step", ValueType::integer, Unit::none, "Number"}, kWall},
                                  {{1, 4, 1'000}, {1, 4, 3'000}, {Value(), 5, 2'000}});
  const StepScalars scalars = scalars_of(Run{}, answer);
  CHECK(points(scalars, "rank1", "some/wall_s") == Points{{4, 1e-6}});
  CHECK(points(scalars, "run", "some/wall_s") == Points{{5, 2e-6}});
  CHECK(tells(scalars, "the first is written: 1 step"));
}

TEST_CASE("step scalars: a recording without a time of day ends when its file was written") {
  const TempFile file("{}");
  Run run = run_of_steps({{"step 0", 0}, {"step 1", 1}}, kAbsent);
  run.traces[0].source.path = file.path();
  const Answer answer = answer_of({kRank, kStep, kWall}, {{0, "step 0", 1}, {0, "step 1", 1}});
  const StepScalars scalars = scalars_of(run, answer);
  REQUIRE(scalars.ranks.size() == 1);
  const auto& steps = scalars.ranks[0].steps;
  CHECK(steps[1].unix_ns > kDay);
  CHECK(steps[1].unix_ns - steps[0].unix_ns == 1'000'000'000);
  CHECK(tells(scalars, "that of the file: rank0"));
}

TEST_CASE("step scalars: all steps of the job, from its marks") {
  Run run = run_of_steps({{"ProfilerStep#1", 1}});
  Trace history;
  history.steps = {{.name = "ProfilerStep#0", .number = 0, .start_ns = kDay, .end_ns = kDay + 500'000'000},
                   {.name = "ProfilerStep#1", .number = 1, .start_ns = kDay, .end_ns = kDay + 250'000'000}};
  run.history.push_back(std::move(history));
  Answer answer;
  CHECK(scalars_of(run, answer).ranks.empty());
  answer.name = "history";
  CHECK(points(scalars_of(run, answer), "rank0", "history/wall_s") == Points{{0, 0.5}, {1, 0.25}});
}

TEST_CASE("step scalars: the event file, which is replaced when it is written again") {
  const TempFolder folder;
  const Run run = run_of_steps({{"ProfilerStep#7", 7}, {"ProfilerStep#8", 8}});
  const Answer answer =
      answer_of({kRank, kStep, kWall}, {{0, "ProfilerStep#7", 500'000'000}, {0, "ProfilerStep#8", 1}});
  const StepScalars scalars = scalars_of(run, answer);
  for (int again = 0; again < 2; again++) REQUIRE(write_event_files(scalars, folder / "tb"));
  const auto records = formats::read_records(whole_file(folder / "tb/rank0/events.out.tfevents.stepscope"));
  REQUIRE(records);
  REQUIRE(records->size() == 3);

  std::map<std::uint32_t, formats::ProtoField> head, step, value;
  const auto read = [](std::string_view message, std::map<std::uint32_t, formats::ProtoField>& fields) {
    formats::ProtoFields all(message);
    for (formats::ProtoField field; all.next(field);) fields[field.number] = field;
    CHECK(all.ok());
  };
  read(records->at(0), head);
  CHECK(head[3].bytes == "brain.Event:2");
  read(records->at(1), step);
  CHECK(std::bit_cast<double>(step[1].value) == doctest::Approx(1'700'000'001.0));
  CHECK(step[2].integer() == 7);
  formats::ProtoFields values(step[5].bytes);
  formats::ProtoField first;
  REQUIRE(values.next(first));
  read(first.bytes, value);
  CHECK(value[1].bytes == "some/wall_s");
  CHECK(std::bit_cast<float>(static_cast<std::uint32_t>(value[2].value)) == 0.5f);
  CHECK(value[9].bytes.find("How long it took") != std::string_view::npos);
}

}  // namespace stepscope::write
