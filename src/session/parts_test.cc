// Recordings in several files, as the hooks of `stepscope run` write them.
#include <algorithm>

#include "base/temp_fixture.h"
#include "model/settings.h"
#include "session/run_fixture.h"

namespace stepscope::session {
namespace {

// One file: steps of 100 us from `first`, each with an op and a kernel that it launched.
std::string part_text(int window, int part, int first, int last, const std::string& kind = "steps", int rank = 0) {
  std::string steps, events;
  for (int step = first; step <= last; step++) {
    const std::string ts = std::to_string(step * 100), id = std::to_string(step + 1);
    steps += (steps.empty() ? "" : ",") + std::to_string(step);
    events += R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#)" + std::to_string(step) +
              R"(","pid":7,"tid":8,"ts":)" + ts + R"(,"dur":90},)" +
              R"({"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":8,"ts":)" + ts +
              R"(.5,"dur":20,"args":{"External id":)" + id + R"(,"note":"step )" + std::to_string(step) + R"("}},)" +
              R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":8,"ts":)" + ts +
              R"(.7,"dur":5,"args":{"correlation":)" + id + R"(}},)" +
              R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":)" + std::to_string(step * 100 + 20) +
              R"(,"dur":30,"args":{"device":0,"stream":7,"correlation":)" + id + R"(}},)" +
              R"({"ph":"s","cat":"ac2g","id":1,"name":"ac2g","pid":7,"tid":8,"ts":)" + ts + R"(.7},)";
  }
  if (kind == "stacks") {
    events += R"({"ph":"X","cat":"python_function","name":"job.py(3): train","pid":7,"tid":8,"ts":)" +
              std::to_string(first * 100) + R"(,"dur":80},)";
  }
  events.pop_back();
  return R"({"schemaVersion":1,"baseTimeNanoseconds":)" + std::to_string(1'000'000 * part) +
         R"(,"distributedInfo":{"rank":)" + std::to_string(rank) + R"(,"world_size":2},"stepscope_waits":[[)" +
         std::to_string(first) + R"(,5000]],"stepscope":{"process":"h_)" + std::to_string(7 + rank) + R"(","window":)" +
         std::to_string(window) + R"(,"part":)" + std::to_string(part) + R"(,"kind":")" + kind + R"(","steps":[)" +
         steps + R"(]},"traceEvents":[)" + events + "]}";
}

bool has_issue(const Run& run, std::string_view code) {
  return std::any_of(run.issues.begin(), run.issues.end(), [&](const Issue& issue) { return issue.code == code; });
}

}  // namespace

TEST_CASE("parts: the files of a window are one recording") {
  const TempFolder folder;
  folder.put("b.json", part_text(0, 1, 2, 4));
  folder.put("a.json", part_text(0, 0, 0, 1));
  const Run run = corpus_fixture::opened(folder.path());
  REQUIRE(run.traces.size() == 1);
  const Trace& trace = run.traces.front();
  CHECK(trace.steps.size() == 5);
  CHECK(trace.steps[2].start_ns == 1'200'000);  // 200 us by the second file's clock, which is 1 ms ahead
  CHECK(trace.tracks.size() == 2);
  CHECK(trace.source.parts == std::vector<std::string>{folder / "a.json", folder / "b.json"});
  CHECK(trace.links.device_linked == 5);
  CHECK(trace.links.device_unlinked == 0);
  CHECK(trace.flows.size() == 5);
  CHECK(trace.flows.id[0] != trace.flows.id[2]);
  CHECK_FALSE(has_issue(run, "parts_missing"));
  const std::vector<CoreWait> waits = core_waits(trace);
  REQUIRE(waits.size() == 2);
  CHECK(waits[0].step == 0);
  CHECK(waits[1].step == 2);
  std::vector<SliceId> ops;
  for (std::size_t row = 0; row < trace.ops.size(); row++) {
    if (trace.name(trace.ops.slice[row]) == "aten::mm") ops.push_back(trace.ops.slice[row]);
  }
  const auto texts = slice_texts(trace, ops);
  REQUIRE(texts);
  REQUIRE(texts->size() == 5);
  for (std::size_t i = 0; i < texts->size(); i++) {
    CHECK((*texts)[i].find("\"note\":\"step " + std::to_string(i) + "\"") != std::string::npos);
  }
}

TEST_CASE("parts: of requests that have a thread each, all threads are one lane") {
  const TempFolder folder;
  const auto put = [&](int part, const std::string& thread) {
    std::string text = part_text(0, part, part, part);
    const std::string tid = R"("tid":8)", kind = R"("kind":"steps")";
    for (std::size_t at = text.find(tid); at != text.npos; at = text.find(tid, at + 1)) {
      text.replace(at, tid.size(), R"("tid":)" + thread);
    }
    text.insert(text.find(kind) + kind.size(), R"(,"thread":)" + thread);
    folder.put(std::to_string(part) + ".json", text);
  };
  put(0, "21");
  put(1, "22");
  const Run run = corpus_fixture::opened(folder.path());
  REQUIRE(run.traces.size() == 1);
  const Trace& trace = run.traces.front();
  REQUIRE(trace.steps.size() == 2);
  CHECK(trace.steps[0].track == trace.steps[1].track);
  CHECK(trace.tracks.size() == 2);
}

TEST_CASE("parts: a missing one is told, of several windows the fullest is opened") {
  const TempFolder folder;
  folder.put("a.json", part_text(0, 0, 0, 1));
  folder.put("b.json", part_text(1, 0, 10, 12));
  folder.put("c.json", part_text(1, 2, 14, 15));
  const Run run = corpus_fixture::opened(folder.path());
  REQUIRE(run.traces.size() == 1);
  CHECK(run.traces.front().steps.size() == 5);
  CHECK(has_issue(run, "parts_missing"));
  CHECK(has_issue(run, "other_windows"));
}

TEST_CASE("parts: of several windows the one that most ranks have is opened") {
  const TempFolder folder;
  folder.put("a.json", part_text(0, 0, 0, 1));
  folder.put("b.json", part_text(1, 0, 10, 19));
  folder.put("c.json", part_text(0, 0, 1, 3, "steps", 1));
  Run run = corpus_fixture::opened(folder.path());
  REQUIRE(run.traces.size() == 2);
  CHECK(run.traces[0].steps.size() == 2);
  CHECK(run.traces[1].steps.size() == 3);
  CHECK(has_issue(run, "other_windows"));

  folder.put("c.json", part_text(0, 0, 40, 49, "steps", 1));  // now no two ranks have a step in common
  run = corpus_fixture::opened(folder.path());
  REQUIRE(run.traces.size() == 1);
  CHECK(run.traces[0].steps.size() == 10);
}

TEST_CASE("parts: the step with stacks feeds the answer about stacks alone") {
  const TempFolder folder;
  folder.put("a.json", part_text(0, 0, 0, 4));
  const std::string stacks = folder.put("b.json", part_text(1, 0, 5, 5, "stacks"));
  const Run run = corpus_fixture::opened(folder.path());
  REQUIRE(run.traces.size() == 1);
  REQUIRE(run.stack_steps.size() == 1);
  CHECK(run.traces.front().steps.size() == 5);
  const auto answer = one_answer(run, "stacks");
  REQUIRE(answer);
  CHECK(answer->tables.front().rows.size() == 1);
  const Run alone = corpus_fixture::opened(std::vector{stacks});
  CHECK(alone.traces.size() == 1);
  CHECK(alone.stack_steps.empty());
}

}  // namespace stepscope::session
