// What the report says of ranks from their marks alone.
#include "session/run_marks.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/temp_fixture.h"
#include "run/ring_fixture.h"

namespace stepscope::session {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// A rank of a world of `world` that ended `steps` steps of one second each.
void put_rank(const TempFolder& folder, int rank, int world, int steps, std::int64_t open_part = -1) {
  std::filesystem::create_directories(folder.path() / "telemetry");
  run::RingText ring(64, R"({"host": "elsewhere", "pid": 1, "rank": )" + std::to_string(rank) + R"(, "world_size": )" +
                             std::to_string(world) + "}");
  ring.add(0, 0, 0, run::RingText::kClock);
  for (int step = 0; step < steps; step++) ring.add(step * kSecond, kSecond, step, run::RingText::kStep, 4);
  if (open_part >= 0) ring.add(steps * kSecond, 0, open_part, run::RingText::kPart, run::kPartBegins);
  folder.put("telemetry/elsewhere_" + std::to_string(rank) + ".ring", ring.bytes());
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

TEST_CASE("marks: the folder of a trace") {
  const TempFolder folder;
  std::filesystem::create_directories(folder.path() / "telemetry");
  CHECK(run_folder_of(folder / "traces/rank0/a.json.gz") == folder.path().string());
  CHECK(run_folder_of(folder / "a.json.gz").empty());
  CHECK(run_folder_of("a.json").empty());
}

}  // namespace stepscope::session
