// Plays a graph: when every node begins, given what each costs. One pass over nodes and edges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulate/replay_graph.h"

namespace stepscope::simulate {

// What becomes of waits that nothing explains: they stay as they were, or are gone.
enum class Waits : std::uint8_t { frozen, freed };

struct Played {
  std::vector<std::int64_t> start_ns;  // per node, on the run's clock
};

Played play(const ReplayGraph& graph, const Costs& costs, Waits waits);

// When `node` could begin at the earliest for what binds it, and what that is: an edge, the node before it on its lane,
// or (kNone) the recording.
struct Binding {
  std::uint32_t from = kNone;
  WaitEvidence why = WaitEvidence::none;
  bool from_start = false;
};
Binding binding_of(const ReplayGraph& graph, const Costs& costs, const Played& played, std::uint32_t node);

// Where an instant of the recording on a lane is when the graph is played: within a node in proportion.
std::int64_t moved(const ReplayGraph& graph, const Costs& costs, const Played& played, std::uint32_t lane,
                   std::int64_t time_ns);

// The steps of a rank as they are measured: from the start of the first whole one on its thread to the end of the last,
// with the device work that they launched; the whole recording where no step is whole.
struct StepWindow {
  std::uint32_t trace = 0;
  std::uint32_t lane = kNone;              // its thread
  std::int64_t start_ns = 0, end_ns = 0;   // of the host, on the run's clock
  std::vector<std::uint32_t> device;       // last device nodes of these steps, one per lane
  std::vector<std::uint32_t> communicate;  // what threads communicated last until then, one node per lane
  std::int64_t steps = 1;
  bool whole_steps = false;  // false: the recording stands for a step
};
std::vector<StepWindow> step_windows(const Run& run, const ReplayGraph& graph);

// Mean time of a step, and the node that ends the last (kNone: the host thread itself). `overlapped`: no thread waits
// for communication any more, so that it has to be asked itself whether it has ended.
struct StepTime {
  std::int64_t step_ns = 0;
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t last = kNone;
};
StepTime step_time(const ReplayGraph& graph, const Costs& costs, const Played& played, const StepWindow& window,
                   bool overlapped = false);

}  // namespace stepscope::simulate
