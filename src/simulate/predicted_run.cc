// The predicted run as a trace: what was recorded, at the moments at which the graph says it would have been.
#include <algorithm>
#include <optional>

#include "model/windows.h"
#include "simulate/predict.h"

namespace stepscope::simulate {
namespace {

class Mover {
 public:
  Mover(Run& run, const ReplayGraph& graph, const Costs& costs, const Played& played, std::uint32_t trace)
      : trace_(run.traces[trace]), graph_(graph), costs_(costs), played_(played), number_(trace) {
    lane_of_.assign(trace_.tracks.size(), kNone);
    for (std::uint32_t lane = 0; lane < graph.lanes.size(); lane++) {
      if (graph.lanes[lane].trace != trace || graph.lanes[lane].nodes.empty()) continue;
      lane_of_[static_cast<std::size_t>(graph.lanes[lane].track)] = lane;
      const bool longer = rest_ == kNone || graph.lanes[lane].nodes.size() > graph.lanes[rest_].nodes.size();
      if (trace_.steps.empty() ? longer : graph.lanes[lane].track == trace_.steps.front().track) rest_ = lane;
    }
  }

  void move() {
    move_slices();
    move_times(trace_.instants.time_ns, trace_.instants.track);
    move_times(trace_.counters.time_ns, trace_.counters.track);
    move_times(trace_.memory.time_ns, trace_.memory.track);
    move_times(trace_.flows.time_ns, trace_.flows.track);
    for (Step& step : trace_.steps) {
      step.start_ns = moved_time(step.track, step.start_ns);
      step.end_ns = step.device_end_ns = moved_time(step.track, step.end_ns);
    }
    for (std::size_t row = 0; row < trace_.device.size(); row++) {
      const SliceId slice = trace_.device.slice[row];
      if (trace_.device.step[row] == StepId::none || !is_device_work(trace_.kind(slice))) continue;
      std::int64_t& end = trace_.steps[static_cast<std::size_t>(trace_.device.step[row])].device_end_ns;
      end = std::max(end, trace_.slices.end_ns(slice));
    }
  }

 private:
  // Back from the run's clock to the file's, by the same distance: the changes move things by much more than drift.
  std::int64_t moved_time(TrackId track, std::int64_t time_ns) const {
    std::uint32_t lane = track == TrackId::none ? kNone : lane_of_[static_cast<std::size_t>(track)];
    if (lane == kNone) lane = rest_;
    if (lane == kNone) return time_ns;
    const std::int64_t on_run = run_time_ns(trace_, time_ns);
    return time_ns + (moved(graph_, costs_, played_, lane, on_run) - on_run);
  }
  void move_times(Column<std::int64_t>& times, const Column<TrackId>& tracks) const {
    Column<std::int64_t> out;
    std::int64_t* to = out.extend(times.size());
    for (std::size_t i = 0; i < times.size(); i++) to[i] = moved_time(tracks[i], times[i]);
    times = std::move(out);
  }
  void move_slices() {
    std::vector<std::uint32_t> node_of(trace_.slices.size(), kNone);  // of device work: exact, and it may overlap
    for (std::size_t row = 0; row < trace_.device.size(); row++) {
      node_of[static_cast<std::size_t>(trace_.device.slice[row])] = graph_.device_node[number_][row];
    }
    Column<std::int64_t> starts;
    NarrowColumn durations;
    std::int64_t* start = starts.extend(trace_.slices.size());
    for (std::size_t i = 0; i < trace_.slices.size(); i++) {
      const auto slice = static_cast<SliceId>(i);
      const TrackId track = trace_.slices.track[slice];
      std::int64_t end = 0;
      if (const std::uint32_t node = node_of[i]; node != kNone) {
        const std::int64_t by = played_.start_ns[node] - graph_.start_ns[node];
        end = trace_.slices.end_ns(slice) + by + costs_.cost_ns[node] - graph_.costs.cost_ns[node];
        start[i] = end - costs_.cost_ns[node] - waited(node, slice);
      } else {
        start[i] = moved_time(track, trace_.slices.start_ns[slice]);
        end = moved_time(track, trace_.slices.end_ns(slice));
      }
      durations.push_back(std::max<std::int64_t>(end - start[i], 0));
    }
    trace_.slices.start_ns = std::move(starts);
    trace_.slices.dur_ns = std::move(durations);
  }
  // A collective shows as long as its rank is in it: the wait for the others, which is no node, then the transfer.
  std::int64_t waited(std::uint32_t node, SliceId slice) const {
    const std::uint32_t arrival = costs_.before[node];
    if (arrival == kNone || graph_.role[arrival] != NodeRole::arrival || graph_.slice[arrival] != slice) return 0;
    return std::max<std::int64_t>(played_.start_ns[node] - played_.start_ns[arrival], 0);
  }

  Trace& trace_;
  const ReplayGraph& graph_;
  const Costs& costs_;
  const Played& played_;
  std::uint32_t number_;
  std::vector<std::uint32_t> lane_of_;
  std::uint32_t rest_ =
      kNone;  // what is in no lane, such as counters and the span of the recording, goes along with it
};

}  // namespace

void move_to(Run& run, const ReplayGraph& graph, const Costs& costs, const Played& played) {
  const std::size_t traces = timelines(run).size();
  for (std::uint32_t i = 0; i < traces; i++) Mover(run, graph, costs, played, i).move();
}

}  // namespace stepscope::simulate
