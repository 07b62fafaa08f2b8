// What the report says of ranks from their marks alone.
#include "session/run_marks.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/temp_fixture.h"
#include "run/ring_fixture.h"
#include "session/session.h"

namespace stepscope::session {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// A rank of a world of `world` that ended `steps` steps of one second each.
void put_rank(const TempFolder& folder, int rank, int world, int steps, std::int64_t open_part = -1,
              const std::string& process = "") {
  std::filesystem::create_directories(folder.path() / "telemetry");
  run::RingText ring(64, R"({"host": "elsewhere", "pid": 1, "rank": )" + std::to_string(rank) + R"(, "world_size": )" +
                             std::to_string(world) + "}");
  ring.add(0, 0, 0, run::RingText::kClock);
  for (int step = 0; step < steps; step++) ring.add(step * kSecond, kSecond, step, run::RingText::kStep, 4);
  if (open_part >= 0) ring.add(steps * kSecond, 0, open_part, run::RingText::kPart, run::kPartBegins);
  folder.put("telemetry/elsewhere_" + (process.empty() ? std::to_string(rank) : process) + ".ring", ring.bytes());
}

std::string sentence_of(const Run& run, std::string_view code) {
  const auto found =
      std::find_if(run.issues.begin(), run.issues.end(), [&](const Issue& issue) { return issue.code == code; });
  return found == run.issues.end() ? "" : found->sentence;
}

}  // namespace

TEST_CASE("marks: ranks that never started, were not recorded or ended early are told") {
  const TempFolder folder;
  put_rank(folder, 0, 4, 30);
  put_rank(folder, 1, 4, 30);
  put_rank(folder, 2, 4, 12);
  Run run;
  run.traces.emplace_back().rank.rank = 0;
  add_mark_issues(folder.path().string(), run);
  CHECK(sentence_of(run, "ranks_never_started") == "1 of 4 ranks never ended a step: rank 3");
  CHECK(sentence_of(run, "ranks_not_recorded") == "of ranks 1, 2 the steps are known, but no trace was recorded");
  CHECK(sentence_of(run, "rank_ended_early") ==
        "rank 2 ended after 12 steps, 18 s before the others, which came to 30");
}

TEST_CASE("marks: what a process lost is told though its rank was started anew") {
  const TempFolder folder;
  put_rank(folder, 0, 1, 12, 10);
  put_rank(folder, 0, 1, 40, -1, "started_anew");
  Run run;
  run.traces.emplace_back().rank.rank = 0;
  add_mark_issues(folder.path().string(), run);
  CHECK(sentence_of(run, "part_lost") == "rank 0 ended while it recorded: its steps from 10 to 11 are lost");
}

TEST_CASE("marks: a rank on another host has ended when the job has") {
  const TempFolder folder;
  put_rank(folder, 0, 1, 12, 10);
  for (const char* ended : {"null", "17"}) {
    folder.put("run.json", std::string(R"({"schema_version": 1, "ended_unix_ns": )") + ended + "}");
    Run run;
    run.traces.emplace_back().rank.rank = 0;
    add_mark_issues(folder.path().string(), run);
    CHECK(sentence_of(run, "part_lost").empty() == (std::string_view(ended) == "null"));
  }
}

TEST_CASE("marks: nothing is said where nothing is missing; damaged marks are") {
  const TempFolder folder;
  put_rank(folder, 0, 1, 5);
  Run run;
  run.traces.emplace_back().rank.rank = 0;
  add_mark_issues(folder.path().string(), run);
  CHECK(run.issues.empty());
  folder.put("telemetry/broken.ring", "STEPRING");
  add_mark_issues(folder.path().string(), run);
  CHECK_FALSE(sentence_of(run, "marks_damaged").empty());
}

TEST_CASE("marks: a run folder without a trace opens them, and says so") {
  const TempFolder folder;
  put_rank(folder, 0, 2, 30);
  put_rank(folder, 1, 2, 30);
  const std::string path = folder.path().string();
  const auto run = open(std::span(&path, 1), {.use_cache = false});
  REQUIRE(run.has_value());
  REQUIRE(run->traces.size() == 2);
  CHECK(run->traces[1].rank.rank == 1);
  REQUIRE(run->traces[0].steps.size() == 30);
  CHECK(run->traces[0].steps[7].number == 7);
  CHECK(run->traces[0].source.format == "marks");
  CHECK_FALSE(sentence_of(*run, "only_marks").empty());
}

TEST_CASE("marks: the history of a job has its medians, its slowest steps and its drift") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path() / "telemetry");
  run::RingText ring(1024, R"({"host": "elsewhere", "pid": 1, "rank": 0, "world_size": 1, "rank_source": "x"})");
  ring.add(0, 0, 0, run::RingText::kClock);
  std::int64_t now = 0;
  for (int step = 0; step < 80; step++) {  // the last half takes twice as long; step 10 waits for data
    const std::int64_t forward = (step < 40 ? 1 : 2) * kSecond, data = step == 10 ? 9 * kSecond : 0;
    if (data > 0) ring.add(now, data, step, run::RingText::kPhase, 1);
    ring.add(now + data, forward, step, run::RingText::kPhase, 2);
    ring.add(now, data + forward, step, run::RingText::kStep, 4);
    now += data + forward;
  }
  folder.put("telemetry/elsewhere_0.ring", ring.bytes());
  Run run;
  run.history = read_history(folder.path().string());
  const auto answer = one_answer(run, "history");
  REQUIRE(answer.has_value());
  CHECK(std::get<std::int64_t>(answer->scalar("step_count")->value) == 80);
  const Table& slowest = *answer->table("slowest");
  CHECK(std::get<std::int64_t>(slowest.rows[0][1]) == 10);
  CHECK(std::get<std::string>(slowest.rows[0][4]) == "dataloader");
  CHECK(std::get<std::int64_t>(slowest.rows[0][5]) == 9 * kSecond);
  REQUIRE(answer->findings.size() == 1);
  CHECK(answer->findings[0].id == "steps_grow");
  CHECK(std::get<std::int64_t>(answer->findings[0].evidence[1].value) == 2 * kSecond);
  CHECK(std::holds_alternative<std::monostate>(one_answer(Run{}, "history")->scalar("step_count")->value));
}

TEST_CASE("marks: a job whose steps are of two kinds does not grow slower") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path() / "telemetry");
  run::RingText ring(1024, R"({"host": "elsewhere", "pid": 1, "rank": 0, "world_size": 1, "rank_source": "x"})");
  ring.add(0, 0, 0, run::RingText::kClock);
  std::int64_t now = 0;
  for (int step = 0; step < 41; step++) {  // the early median is a short step, the late one a long one
    const bool is_long = step != 4 && (step % 2 == 0 || step == 33 || step == 35);
    const std::int64_t took = (is_long ? 3 : 1) * kSecond;
    ring.add(now, took, step, run::RingText::kStep, 4);
    now += took;
  }
  folder.put("telemetry/elsewhere_0.ring", ring.bytes());
  Run run;
  run.history = read_history(folder.path().string());
  const auto answer = one_answer(run, "history");
  REQUIRE(answer.has_value());
  CHECK(answer->findings.empty());
}

TEST_CASE("marks: the folder of a trace") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path() / "telemetry");
  CHECK(run_folder_of(folder / "traces/rank0/a.json.gz") == folder.path().string());
  CHECK(run_folder_of(folder / "a.json.gz").empty());
  CHECK(run_folder_of("a.json").empty());
  CHECK(run_folder_of(folder / "telemetry/a.ring") == folder.path().string());
}

}  // namespace stepscope::session
