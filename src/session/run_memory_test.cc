// Where states of memory are found: in a run folder beside traces, alone in a folder, given by name, and damaged.
#include "session/run_memory.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/temp_fixture.h"
#include "session/session.h"

namespace stepscope::session {
namespace {

namespace fs = std::filesystem;

std::string traces() { return (fs::path(__FILE__).parent_path() / "../../tests/traces").string(); }

std::string tiny() {
  std::ifstream in(traces() + "/tiny_memory_state.json");
  REQUIRE(in);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void put_state(const TempFolder& folder, const std::string& rank, const std::string& text) {
  fs::create_directories(folder.path() / "memory_trace" / rank);
  folder.put("memory_trace/" + rank + "/memory_state.json", text);
}

std::string of_rank(int rank) {
  std::string text = tiny();
  const std::string zero = R"("rank":0,"world_size":1,"rank_source":"single process")";
  const std::size_t at = text.find(zero);
  REQUIRE(at != text.npos);
  return text.replace(at, zero.size(),
                      R"("rank":)" + std::to_string(rank) + R"(,"world_size":2,"rank_source":"environment")");
}

Result<Run> opened(const std::string& path) {
  OpenOptions options;
  options.use_cache = false;
  return open(std::span(&path, 1), options);
}

bool has_issue(const Run& run, std::string_view code) {
  return std::any_of(run.issues.begin(), run.issues.end(), [&](const Issue& issue) { return issue.code == code; });
}

}  // namespace

TEST_CASE("a file of the state of memory is opened by itself") {
  auto run = opened(traces() + "/tiny_memory_state.json");
  REQUIRE(run);
  REQUIRE(run->memory_states.size() == 1);
  CHECK(run->memory_states[0].peak->bytes() > 0);
  CHECK(run->traces.size() == 1);
  const std::string name = "memory_state";
  const auto report = answer(*run, std::span(&name, 1));
  REQUIRE(report);
  CHECK(report->failed.empty());
  const auto all = answer(*run, {});  // no other answer fails for it
  REQUIRE(all);
  CHECK(all->failed.empty());
}

TEST_CASE("a folder that holds nothing but states of memory is a run of its ranks") {
  const TempFolder folder;
  put_state(folder, "rank1_dp1_tp0", of_rank(1));
  put_state(folder, "rank0_dp0_tp0", of_rank(0));
  auto run = opened(folder.path().string());
  REQUIRE(run);
  REQUIRE(run->memory_states.size() == 2);
  CHECK(run->memory_states[1].rank == 1);
  CHECK(has_issue(*run, "only_memory"));
  CHECK_FALSE(has_issue(*run, "file_left_out"));
}

TEST_CASE("beside traces they are found, and are no traces") {
  const TempFolder folder;
  fs::create_directories(folder.path() / "traces" / "rank0");
  fs::create_directories(folder.path() / "telemetry");
  fs::copy_file(traces() + "/tiny_train.json", folder.path() / "traces" / "rank0" / "a.pt.trace.json");
  put_state(folder, "rank0_dp0_tp0", tiny());
  put_state(folder, "rank1_dp1_tp0", "{\"kind\": \"memory_state\", ");
  auto run = opened(folder.path().string());
  REQUIRE(run);
  CHECK(run->traces.size() == 1);
  CHECK(run->memory_states.size() == 1);
  CHECK(has_issue(*run, "memory_state_damaged"));
}

TEST_CASE("a process that was started anew is shown beside the first") {
  const TempFolder folder;
  put_state(folder, "rank0_dp0_tp0", of_rank(0));
  put_state(folder, "rank0_dp0_tp0-2", of_rank(0));
  auto run = opened(folder.path().string());
  REQUIRE(run);
  CHECK(run->memory_states.size() == 2);
  CHECK(has_issue(*run, "memory_states_of_one_rank"));
}

}  // namespace stepscope::session
