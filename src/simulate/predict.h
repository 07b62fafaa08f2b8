// What changes are worth: the steps of a run played with them and without.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/answer.h"
#include "model/change.h"
#include "simulate/apply.h"
#include "simulate/comm_model.h"
#include "simulate/play.h"
#include "simulate/replay_graph.h"

namespace stepscope::simulate {

// A stretch of the path that bounds the steps: in the played run, at every instant just one. They touch, from the start
// of the first step to the end of the last.
struct PathPiece {
  std::uint32_t node = kNone;  // a meeting is told by what came last to it
  std::int64_t from_ns = 0, until_ns = 0;
  bool handed_over = false;  // not the work itself: its launch latency, the way from what came before, a wait
};

// One name on a lane of that path.
struct PathPart {
  std::uint32_t lane = kNone;
  NodeRole role = NodeRole::host;
  bool handed_over = false;  // not the work itself: its launch latency, the way from what came before, a wait
  std::string name;
  std::int64_t time_ns = 0;
};

// What a fix makes of single nodes: their new costs, as a range, and waits that do not hold. What is gone (0 at both
// ends) waits for nothing either.
struct Rewrite {
  struct Node {
    std::uint32_t node = kNone;
    std::int64_t least_ns = 0, most_ns = 0;
  };
  std::vector<Node> nodes;
  std::vector<std::uint32_t> no_wait;  // of threads: they go on there without waiting for a device
};

struct Prediction {
  std::int64_t now_ns = 0;       // mean step of the rank that takes longest, as recorded
  std::int64_t after_ns[2]{};    // waits frozen, waits freed: what the step of now_ns becomes, shorter one first
  double frozen = 1, freed = 1;  // as often as fast, with waits that stay and waits that go
  double speedup_low = 1, speedup_high = 1;  // the smaller and the larger of these
  std::string binds;           // what bounds the step afterwards: "stream 7 of rank 0", "the main thread of rank 0"
  double binds_share = 0;      // of the path
  std::vector<PathPart> path;  // of all steps of that rank, most time first
  std::int64_t path_ns = 0;
  std::vector<Applied> applied;  // per change
  StepWindow window;             // of the rank whose steps they are, with the time that they take
  StepTime time;
  // the slow end: waits frozen, and what takes between a shorter and a longer time takes the longer
  Costs costs;
  Played played;
};

class Predictor {
 public:
  // Keeps a reference: `run`, which is derived, outlives this.
  explicit Predictor(const Run& run);

  // False: nothing that could be played was recorded.
  bool can_play() const { return !windows_.empty(); }
  const ReplayGraph& graph() const { return graph_; }
  const std::vector<StepWindow>& windows() const { return windows_; }
  const std::vector<CommModel>& models() const { return models_; }
  const Played& now() const { return frozen_; }  // as recorded, played again

  // All changes together. An error names the change that cannot be applied.
  Result<Prediction> predict(std::span<const Change> changes, const Rewrite& rewrite = {}) const;
  // The path that bounds the steps of a prediction, by time.
  std::vector<PathPiece> path_of(const Prediction& made) const;

  // "thread 123 of rank 0", "stream 7 of rank 0"
  std::string lane_name(std::uint32_t lane) const;

 private:
  struct Longest {
    std::int64_t step_ns = 0;
    const StepWindow* window = nullptr;
    StepTime time;
  };
  Longest longest(const Costs& costs, const Played& played, std::span<const Change> changes) const;
  void name_path(Prediction& out) const;
  std::string resource(const PathPart& part) const;

  const Run& run_;
  ReplayGraph graph_;
  std::vector<StepWindow> windows_;
  std::vector<CommModel> models_;
  Played frozen_, freed_;
};

// Gives a finding its gain, or the reason why it has none: not predicted, or too little. `how`: what was assumed.
void give_gain(Finding& finding, const Result<Prediction>& made, std::string how);

// The trace of the played run, in the place of the recorded one: every slice, instant, counter and arrow is moved to
// when it would be. `run` is the one that the graph was made of.
void move_to(Run& run, const ReplayGraph& graph, const Costs& costs, const Played& played);

}  // namespace stepscope::simulate
