// Makes the graph of a recording and plays it again and again: what each costs.
//
//   replay_file PATH…  →  {"nodes", "edges", "build_s", "play_s", "nodes_per_s", "unexplained_share"}; play_s is the
//   median of 21, CPU seconds
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "cost.h"
#include "session/session.h"
#include "simulate/predict.h"
#include "simulate/unexplained.h"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::vector<std::string> paths(argv + 1, argv + argc);
  const auto run = stepscope::session::open(paths, {});
  if (!run) {
    std::fprintf(stderr, "%s\n", stepscope::to_text(run.error()).c_str());
    return 1;
  }
  const stepscope::bench::Cost build;
  const stepscope::simulate::ReplayGraph graph = stepscope::simulate::replay_graph(*run);
  const double build_s = build.cpu_s();
  std::vector<double> plays;
  std::int64_t last = 0;
  for (int round = 0; round < 21; round++) {
    const stepscope::bench::Cost cost;
    const auto played = stepscope::simulate::play(graph, graph.costs, stepscope::simulate::Waits::frozen);
    plays.push_back(cost.cpu_s());
    if (graph.size() > 0) last = std::max(last, played.start_ns.back());
  }
  std::sort(plays.begin(), plays.end());
  const double play_s = plays[plays.size() / 2];
  const auto waits = stepscope::simulate::unexplained_waits(graph, stepscope::simulate::step_windows(*run, graph));
  const auto share = stepscope::simulate::unexplained_share(graph, waits);
  std::printf(
      "{\"nodes\": %zu, \"edges\": %zu, \"build_s\": %.4f, \"play_s\": %.6f, \"nodes_per_s\": %.3g, "
      "\"unexplained_share\": %.4f, \"last_ns\": %lld}\n",
      graph.size(), graph.edges.size(), build_s, play_s, play_s > 0 ? static_cast<double>(graph.size()) / play_s : 0,
      share.value_or(0), static_cast<long long>(last));
  return 0;
}
