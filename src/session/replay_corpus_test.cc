// The replay on real traces: it gives the recording, and explains it but for the share that is told.
// Needs the traces of other projects ($STEPSCOPE_CORPUS, else ../shared/data); skipped with a message without them.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "derive/derive.h"
#include "session/run_fixture.h"
#include "simulate/predict.h"
#include "simulate/unexplained.h"

namespace stepscope {
namespace {

using namespace corpus_fixture;
using simulate::Predictor;

Result<Run> opened(const fs::path& path) {
  return session::open(std::vector{(corpus() / path).string()}, {.use_cache = false});
}

double share_of(const Run& run) {
  const Predictor predictor(run);
  const auto waits = simulate::unexplained_waits(predictor.graph(), predictor.windows());
  return simulate::unexplained_share(predictor.graph(), waits).value_or(0);
}

std::int64_t waits_of(const simulate::ReplayGraph& graph) {
  std::int64_t sum = 0;
  for (std::size_t node = 0; node < graph.size(); node++) sum += std::max<std::int64_t>(graph.costs.wait_ns[node], 0);
  return sum;
}

TEST_CASE("corpus: every recording is played to the nanosecond") {
  if (!has_corpus()) return;
  int played = 0;
  for (const char* folder : {"hta", "deepseek", "nsys"}) {
    for (const auto& entry : fs::recursive_directory_iterator(corpus() / folder)) {
      if (!entry.is_regular_file()) continue;
      const auto run = session::open(std::vector{entry.path().string()}, {.use_cache = false});
      if (!run || run->traces.empty()) continue;
      CAPTURE(entry.path().string());
      const Predictor predictor(*run);
      if (!predictor.can_play()) continue;
      const simulate::ReplayGraph& graph = predictor.graph();
      std::size_t moved = 0;
      for (std::size_t node = 0; node < graph.size(); node++) {
        moved += predictor.now().start_ns[node] != graph.start_ns[node] ? 1 : 0;
      }
      CHECK(moved == 0);
      played++;
    }
  }
  CHECK(played >= 20);
}

TEST_CASE("corpus: what explains the waits of recordings with steps") {
  if (!has_corpus()) return;
  struct Known {
    const char* path;
    double most;
  };
  for (const Known& known :
       {Known{"deepseek/train.json", 0.01}, Known{"nsys/h100_2gpu_1s.sqlite", 0.005},
        Known{"nsys/mfu_2gpu_after.sqlite", 0.005},
        Known{"hta/ns_resolution_trace/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz", 0.01},
        Known{"hta/nccl_parser_config/nccl_data.json.gz", 0.01},
        Known{"hta/df_index_resolver/df_index_resolver.json.gz", 0.01},
        Known{"hta/trace_diff/control/control.json.gz", 0.02}, Known{"hta/trace_diff/test/test.json.gz", 0.06}}) {
    CAPTURE(std::string(known.path));
    const auto run = opened(known.path);
    REQUIRE(run);
    const double share = share_of(*run);
    MESSAGE(std::string(known.path) << ": " << 100 * share << " % of the steps in waits that nothing explains");
    CHECK(share <= known.most);
  }
}

// The control: waits that are put in must come out as unexplained, or the evidence would explain anything.
TEST_CASE("corpus: kernels that are delayed raise the unexplained waits by as much") {
  if (!has_corpus()) return;
  for (const char* path : {"deepseek/train.json", "nsys/h100_2gpu_1s.sqlite"}) {
    CAPTURE(std::string(path));
    auto run = opened(path);
    REQUIRE(run);
    std::int64_t before = 0, added = 0;
    {
      const Predictor predictor(*run);
      const simulate::ReplayGraph& graph = predictor.graph();
      simulate::Costs costs = graph.costs;
      before = waits_of(graph);
      std::mt19937 random(7);
      for (std::size_t node = 0; node < graph.size(); node++) {
        if (graph.role[node] != simulate::NodeRole::device || random() % 20 != 0) continue;
        const auto delay = static_cast<std::int64_t>(100'000 + random() % 900'000);
        costs.wait_ns[node] += delay;
        added += delay;
      }
      const simulate::Played played = simulate::play(graph, costs, simulate::Waits::frozen);
      simulate::move_to(*run, graph, costs, played);
    }
    const std::int64_t after = waits_of(simulate::replay_graph(*run));
    const double found = static_cast<double>(after - before) / static_cast<double>(added);
    MESSAGE(std::string(path) << ": " << 100 * found << " % of the waits that were added are found");
    CHECK(added > 1'000'000);
    CHECK(found >= 0.9);
  }
}

}  // namespace
}  // namespace stepscope
