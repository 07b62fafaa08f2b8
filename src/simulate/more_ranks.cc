#include "simulate/more_ranks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "model/windows.h"

namespace stepscope::simulate {
namespace {

constexpr std::size_t kMostPlaces = 64'000'000;  // nodes times clones: half a GB
constexpr std::size_t kMostPlays = 1'000'000'000;
constexpr std::size_t kDraws = 8;
constexpr std::uint32_t kNoStep = kNone;

bool is_work(NodeRole role) {
  return role != NodeRole::communicate && role != NodeRole::arrival && role != NodeRole::meeting;
}

// What a rank did in one step: on its thread, and on its device.
using Work = std::array<double, 2>;

class Clones {
 public:
  Clones(const Run& run, const ReplayGraph& graph, const Costs& costs, std::int64_t ranks)
      : run_(run), graph_(graph), costs_(costs), recorded_(static_cast<std::int64_t>(timelines(run).size())) {
    out_.late_ns.assign(graph.size(), 0);
    const auto most = static_cast<std::int64_t>(kMostPlaces / std::max<std::size_t>(graph.size(), 1));
    // A clone more of each than are needed would still be a rank more: the last round has only some.
    ranks = std::max(std::min(ranks, most * recorded_), recorded_);
    per_rank_ = (ranks + recorded_ - 1) / std::max<std::int64_t>(recorded_, 1);
    out_.ranks = ranks;
  }

  MoreRanks take() {
    if (!meet() || out_.ranks <= recorded_) return std::move(out_);
    find_steps();
    if (out_.steps == 0) return std::move(out_);
    const std::size_t places = graph_.size() * static_cast<std::size_t>(per_rank_);
    const std::size_t draws = std::clamp<std::size_t>(kMostPlays / places, 1, kDraws);
    std::vector<double> late(graph_.size(), 0);
    for (std::size_t i = 0; i < draws; i++) {
      draw();
      play(late);
    }
    // Groups that meet at the same time wait at the same time: what the rank waits that waits most.
    std::vector<double> waits(static_cast<std::size_t>(recorded_), 0);
    for (std::uint32_t node = 0; node < graph_.size(); node++) {
      out_.late_ns[node] = std::llround(late[node] / static_cast<double>(draws));
      if (!in_steps_[node] || out_.late_ns[node] == 0) continue;
      for (const Edge& edge : graph_.edges_of(node)) {
        waits[graph_.lanes[graph_.lane[edge.from]].trace] += static_cast<double>(out_.late_ns[node]);
      }
    }
    const double most = *std::max_element(waits.begin(), waits.end());
    out_.late_per_step_ns = std::llround(most / static_cast<double>(most_steps_));
    return std::move(out_);
  }

 private:
  bool meet() const {
    return std::any_of(graph_.role.begin(), graph_.role.end(), [](NodeRole role) { return role == NodeRole::meeting; });
  }

  void find_steps() {
    step_of_.assign(graph_.size(), kNoStep);
    in_steps_.assign(graph_.size(), false);
    work_.resize(static_cast<std::size_t>(recorded_));
    std::int64_t first = INT64_MAX, last = INT64_MIN;
    for (std::size_t t = 0; t < work_.size(); t++) {
      const Trace& trace = run_.traces[t];
      std::vector<std::pair<std::int64_t, std::int64_t>> steps;
      for (const Step& step : trace.steps) {
        if (!step.partial) steps.emplace_back(run_time_ns(trace, step.start_ns), run_time_ns(trace, step.end_ns));
      }
      work_[t].assign(steps.size(), {});
      if (steps.empty()) continue;
      first = std::min(first, steps.front().first);
      last = std::max(last, steps.back().second);
      most_steps_ = std::max(most_steps_, static_cast<std::int64_t>(steps.size()));
      for (const Lane& lane : graph_.lanes) {
        if (lane.trace == t) place(lane, steps, work_[t]);
      }
    }
    for (std::size_t node = 0; node < graph_.size(); node++) {
      in_steps_[node] = graph_.start_ns[node] >= first && graph_.start_ns[node] < last;
    }
    for (std::size_t t = 0; t < work_.size(); t++) {
      if (work_[t].empty() || is_left_out(t)) continue;
      models_.push_back(t);
      out_.steps += static_cast<std::int64_t>(work_[t].size());
    }
  }

  void place(const Lane& lane, const std::vector<std::pair<std::int64_t, std::int64_t>>& steps,
             std::vector<Work>& work) {
    std::size_t step = 0;
    for (const std::uint32_t node : lane.nodes) {
      const std::int64_t start = graph_.start_ns[node];
      while (step < steps.size() && steps[step].second <= start) step++;
      if (step == steps.size()) return;
      if (start < steps[step].first || !is_work(graph_.role[node])) continue;
      step_of_[node] = static_cast<std::uint32_t>(step);
      // Other threads than that of the steps wait most of the time, which is none of their work.
      if (!lane.device && lane.track != graph_.main_track[lane.trace]) continue;
      work[step][lane.device ? 1 : 0] += static_cast<double>(graph_.costs.cost_ns[node]);
    }
  }

  // A change said that nobody waits for this rank: then nobody waits for one like it.
  bool is_left_out(std::size_t trace) const {
    bool left_out = false;
    for (std::size_t node = 0; node < graph_.size(); node++) {
      if (graph_.role[node] != NodeRole::meeting) continue;
      for (std::uint32_t e = graph_.edge_begin[node]; e < graph_.edge_begin[node + 1]; e++) {
        if (graph_.lanes[graph_.lane[graph_.edges[e].from]].trace != trace) continue;
        if (costs_.dropped[e] == 0) return false;
        left_out = true;
      }
    }
    return left_out;
  }

  // Per recorded rank, clone and step of it: by how much its work differs. The first clone is the rank itself.
  void draw() {
    factors_.assign(static_cast<std::size_t>(recorded_), {});
    for (std::size_t t = 0; t < factors_.size(); t++) {
      const std::size_t steps = work_[t].size();
      factors_[t].assign(static_cast<std::size_t>(per_rank_) * steps, {1, 1});
      for (std::size_t clone = 1; clone < static_cast<std::size_t>(per_rank_); clone++) {
        const std::vector<Work>& like = work_[models_[random_() % models_.size()]];
        for (std::size_t step = 0; step < steps; step++) {
          const Work &drawn = like[random_() % like.size()], &own = work_[t][step];
          for (std::size_t i = 0; i < own.size(); i++) {
            if (own[i] > 0 && drawn[i] > 0) factors_[t][clone * steps + step][i] = drawn[i] / own[i];
          }
        }
      }
    }
  }

  std::int64_t cost(std::uint32_t node, std::size_t clone) const {
    const std::int64_t cost = costs_.cost_ns[node];
    if (clone == 0 || step_of_[node] == kNoStep) return cost;
    const Lane& lane = graph_.lanes[graph_.lane[node]];
    const Work& factors = factors_[lane.trace][clone * work_[lane.trace].size() + step_of_[node]];
    return std::llround(static_cast<double>(cost) * factors[lane.device ? 1 : 0]);
  }

  bool exists(std::size_t trace, std::size_t clone) const {
    return static_cast<std::int64_t>(clone) * recorded_ + static_cast<std::int64_t>(trace) < out_.ranks;
  }
  std::size_t clones_of(std::uint32_t node) const {
    if (graph_.lane[node] == kNone) return 1;
    auto clones = static_cast<std::size_t>(per_rank_);
    if (!exists(graph_.lanes[graph_.lane[node]].trace, clones - 1)) clones--;
    return clones;
  }

  // When a clone of the end of an edge is reached. What has no such clone, as a meeting, is there once.
  std::int64_t reached(const Edge& edge, std::size_t clone) const {
    if (clone >= clones_of(edge.from)) clone = 0;
    return start_[place_of(edge.from, clone)] + (edge.from_start ? 0 : cost(edge.from, clone)) + edge.lag_ns;
  }
  std::size_t place_of(std::uint32_t node, std::size_t clone) const {
    return node * static_cast<std::size_t>(per_rank_) + clone;
  }

  void play(std::vector<double>& late) {
    start_.resize(graph_.size() * static_cast<std::size_t>(per_rank_));
    for (std::uint32_t node = 0; node < graph_.size(); node++) {
      if (graph_.role[node] == NodeRole::meeting) {
        meet_at(node, late);
        continue;
      }
      const std::size_t clones = clones_of(node);
      for (std::size_t clone = 0; clone < clones; clone++) start_[place_of(node, clone)] = start_of(node, clone);
    }
  }

  std::int64_t start_of(std::uint32_t node, std::size_t clone) const {
    constexpr std::int64_t kNever = INT64_MIN;
    std::int64_t ready = kNever;
    if (const std::uint32_t before = costs_.before[node]; before != kNone) {
      ready = start_[place_of(before, clone)] + cost(before, clone) + costs_.gap_ns[node];
    }
    for (std::uint32_t e = graph_.edge_begin[node]; e < graph_.edge_begin[node + 1]; e++) {
      if (costs_.dropped[e] == 0) ready = std::max(ready, reached(graph_.edges[e], clone));
    }
    return ready == kNever ? graph_.start_ns[node] : ready + costs_.wait_ns[node];
  }

  void meet_at(std::uint32_t node, std::vector<double>& late) {
    const std::int64_t recorded = start_of(node, 0);
    std::int64_t last = recorded;
    for (std::uint32_t e = graph_.edge_begin[node]; e < graph_.edge_begin[node + 1]; e++) {
      if (costs_.dropped[e] != 0) continue;
      const std::size_t clones = clones_of(graph_.edges[e].from);
      for (std::size_t clone = 1; clone < clones; clone++) last = std::max(last, reached(graph_.edges[e], clone));
    }
    start_[place_of(node, 0)] = last;
    late[node] += static_cast<double>(last - recorded);
  }

  const Run& run_;
  const ReplayGraph& graph_;
  const Costs& costs_;
  std::int64_t recorded_ = 0, per_rank_ = 1, most_steps_ = 1;
  std::vector<std::uint32_t> step_of_;      // per node: of its rank
  std::vector<bool> in_steps_;              // per node
  std::vector<std::vector<Work>> work_;     // per rank, per step
  std::vector<std::size_t> models_;         // ranks that clones follow
  std::vector<std::vector<Work>> factors_;  // per rank, per clone and step
  std::vector<std::int64_t> start_;         // per node and clone
  // NOLINTNEXTLINE(bugprone-random-generator-seed): the same answer every time
  std::mt19937_64 random_{20240229};
  MoreRanks out_;
};

}  // namespace

MoreRanks more_ranks(const Run& run, const ReplayGraph& graph, const Costs& costs, std::int64_t ranks) {
  return Clones(run, graph, costs, ranks).take();
}

}  // namespace stepscope::simulate
