// One folder with everything that people keep of a job: traces of torch, of nsys, execution traces, Chakra files, and
// what is none of these. Needs the traces of other projects; skipped with a message without them.
#include <doctest/doctest.h>

#include <set>

#include "base/temp_fixture.h"
#include "model/windows.h"
#include "session/run_fixture.h"

namespace stepscope {
namespace {

using namespace corpus_fixture;

TEST_CASE("corpus: a folder of mixed recordings opens as one run, and every answer can be made") {
  if (!has_corpus()) return;
  const TempFolder folder;
  fs::copy(corpus() / "hta/trace_filter/sampled_rank-0.json.gz", folder.path());
  fs::copy(corpus() / "hta/trace_filter/sampled_rank-1.json.gz", folder.path());
  fs::copy(corpus() / "nsys/h100_2gpu_1s.sqlite", folder.path());
  fs::copy(corpus() / "param_et/linear_et.json.gz", folder.path());
  fs::copy(corpus() / "astra_sim/all_reduce.0.et", folder.path());
  fs::copy(corpus() / "mosaic/output.pickle", folder.path());
  folder.put("notes.txt", "two recordings of the same week");
  const Run run = opened(folder.path());
  std::multiset<std::string> formats;
  std::set<std::int64_t> timelines;
  for (const Trace& trace : run.traces) {
    formats.insert(trace.source.format);
    if (!trace.only_graph()) timelines.insert(trace.rank.rank);
  }
  CHECK(formats == std::multiset<std::string>{"chakra", "chrome_trace", "chrome_trace", "execution_trace",
                                              "nsys_sqlite", "nsys_sqlite"});
  CHECK(timelines == std::set<std::int64_t>{0, 1, 2, 3});  // those of nsys name no rank: the free numbers
  CHECK(stepscope::timelines(run).size() == timelines.size());
  const auto report = session::answer(run, {});
  REQUIRE(report);
  CHECK(report->failed.empty());
  REQUIRE(run.snapshots.size() == 1);
  CHECK(run.snapshots[0].source.format == "cuda_snapshot");
  CHECK(report->inputs.size() == 7);
  CHECK(report->answers.size() == session::answer_names().size());
}

}  // namespace
}  // namespace stepscope
