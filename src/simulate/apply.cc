#include "simulate/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "model/answer_parts.h"
#include "model/collective_work.h"
#include "model/windows.h"
#include "simulate/more_ranks.h"
#include "simulate/network_time.h"

namespace stepscope::simulate {
namespace {

Error nothing(std::string what, std::string hint) {
  return {ErrorKind::not_found, std::move(what), "", std::nullopt, std::move(hint)};
}

// Bounded, so that sums of what no clock can tell do not overflow before they are refused.
std::int64_t times(std::int64_t cost_ns, double factor) {
  return std::llround(std::min(static_cast<double>(cost_ns) * factor, kMostNs));
}

class Editor {
 public:
  Editor(const Change& change, const Run& run, const ReplayGraph& graph, const std::vector<CommModel>& models,
         Costs& costs)
      : change_(change), run_(run), graph_(graph), models_(models), costs_(costs) {}

  Result<Applied> edit() {
    if (const std::optional<Error> wrong = out_of_bounds()) return fail(*wrong);
    switch (change_.kind) {
      case ChangeKind::scale:
      case ChangeKind::set_duration: return scale();
      case ChangeKind::data_loader: return data_loader();
      case ChangeKind::overlap: return overlap();
      case ChangeKind::bandwidth: return bandwidth();
      case ChangeKind::ranks: return ranks();
      case ChangeKind::fuse: return fuse();
      case ChangeKind::no_waits: return no_waits();
      case ChangeKind::level_rank: return level_rank();
    }
    return fail({ErrorKind::internal, "an unknown kind of change", "", std::nullopt, ""});
  }

 private:
  std::optional<Error> out_of_bounds() const;
  Result<Applied> scale();
  Result<Applied> data_loader();
  Result<Applied> overlap();
  Result<Applied> bandwidth();
  Result<Applied> ranks();
  Result<Applied> fuse();
  Result<Applied> no_waits();
  Result<Applied> level_rank();

  Result<Selection> selected();
  void remove_waits(std::uint32_t node);
  void remove_between(const std::vector<std::uint8_t>& removed);
  void take_launch(std::uint32_t node, std::vector<std::uint32_t>& launched);
  struct Growth {
    double bytes = 1, latency = 1;  // factors of these parts of a transfer
    double more_ns = 0;
  };
  std::optional<Growth> growth(CollectiveKind kind, std::int64_t from, std::int64_t to) const;
  void add_clones(std::int64_t ranks);
  void count(std::uint32_t node) {
    out_.calls++;
    const std::uint32_t lane = graph_.lane[node];
    (lane != kNone && graph_.lanes[lane].device ? out_.device_ns : out_.host_ns) += graph_.costs.cost_ns[node];
  }

  const Change& change_;
  const Run& run_;
  const ReplayGraph& graph_;
  const std::vector<CommModel>& models_;
  Costs& costs_;
  Applied out_;
};

// What cannot be meant: such times would run over.
std::optional<Error> Editor::out_of_bounds() const {
  constexpr double kMost = 1e6, kLongestNs = 86'400e9;
  const auto refused = [](std::string message, std::string hint) {
    return Error{ErrorKind::usage, std::move(message), "", std::nullopt, std::move(hint)};
  };
  const double value = change_.value;
  switch (change_.kind) {
    case ChangeKind::scale:
    case ChangeKind::data_loader:
      if (value >= 0 && value <= kMost) return std::nullopt;
      return refused("a factor below 0 or above 1,000,000", "Give one such as 0.5");
    case ChangeKind::set_duration:
      if (value >= 0 && value <= kLongestNs) return std::nullopt;
      return refused("a duration of more than a day", "Give one such as 120us");
    case ChangeKind::bandwidth:
      if (value >= 1 / kMost && value <= kMost) return std::nullopt;
      return refused("a bandwidth that is not between a millionth and a million times what it was",
                     "Give a factor such as 2");
    case ChangeKind::ranks:
      if (value >= 2 && value <= kMost && value == std::floor(value)) return std::nullopt;
      return refused("ranks that are not a whole number from 2 to 1,000,000", "Give one such as 64");
    default: return std::nullopt;
  }
}

Result<Selection> Editor::selected() {
  Result<Selection> found = select(run_, graph_, change_.target);
  if (!found) return found;
  if (std::find(found->nodes.begin(), found->nodes.end(), 1) == found->nodes.end()) {
    return fail(nothing("nothing in the recording is '" + change_.target + "'",
                        change_.target.starts_with("module:")
                            ? "Look at the paths with stepscope report PATH --only modules"
                            : "Look at the names with stepscope report PATH --only operators,kernels"));
  }
  out_.calls = found->calls;
  out_.host_ns = found->host_ns;
  out_.device_ns = found->device_ns;
  out_.names = found->names;
  return found;
}

// What is gone waits for nothing but what comes before it.
void Editor::remove_waits(std::uint32_t node) {
  costs_.wait_ns[node] = std::min<std::int64_t>(costs_.wait_ns[node], 0);
  if (graph_.lanes[graph_.lane[node]].device) {
    costs_.gap_ns[node] = 0;
    for (std::uint32_t e = graph_.edge_begin[node]; e < graph_.edge_begin[node + 1]; e++) {
      const WaitEvidence why = graph_.edges[e].why;
      const bool gone = why == WaitEvidence::launch || why == WaitEvidence::collective;
      if (gone && costs_.before[node] != kNone) costs_.dropped[e] = 1;
    }
    return;
  }
  if (costs_.before[node] == kNone) return;
  for (std::uint32_t e = graph_.edge_begin[node]; e < graph_.edge_begin[node + 1]; e++) costs_.dropped[e] = 1;
}

Result<Applied> Editor::scale() {
  const bool pieces = change_.target.starts_with("phase:") || change_.target.starts_with("rank:") ||
                      change_.target == "host:*" || change_.target == "op:*";
  if (change_.kind == ChangeKind::set_duration && pieces) {
    return fail({ErrorKind::usage, "'" + change_.target + "' is no call that could take so long", "", std::nullopt,
                 "Name a kernel, an operator or a range, or scale it"});
  }
  const Result<Selection> found = selected();
  if (!found) return fail(found.error());
  for (std::uint32_t node = 0; node < graph_.size(); node++) {
    if (found->nodes[node] == 0) continue;
    double factor = change_.value;
    if (change_.kind == ChangeKind::set_duration) {
      const std::int64_t call = found->call_ns[node];
      factor = call > 0 ? change_.value / static_cast<double>(call) : 1;
    }
    costs_.cost_ns[node] = times(costs_.cost_ns[node], factor);
    if (factor == 0) remove_waits(node);
  }
  if (change_.kind == ChangeKind::scale && change_.value == 0) remove_between(found->nodes);
  return std::move(out_);
}

// What a thread does between two calls that are gone may have been there for them alone: the Python around them. It
// stays at the slow end of the range and is gone at the fast one.
void Editor::remove_between(const std::vector<std::uint8_t>& removed) {
  constexpr std::int64_t kLongestNs = 100'000;
  out_.longer_ns.assign(graph_.size(), 0);
  for (const Lane& lane : graph_.lanes) {
    if (lane.device) continue;
    std::vector<std::uint32_t> between;
    bool after_removed = false;
    for (const std::uint32_t node : lane.nodes) {
      const SliceId slice = graph_.slice[node];
      const Trace& trace = run_.traces[lane.trace];
      const bool outside = slice == SliceId::none || trace.kind(slice) == SliceKind::user_annotation ||
                           trace.kind(slice) == SliceKind::python_function;
      if (removed[node] == 0 && outside && graph_.costs.cost_ns[node] < kLongestNs) {
        between.push_back(node);
        continue;
      }
      for (const std::uint32_t gap : between) {
        if (!after_removed || removed[node] == 0) break;
        out_.longer_ns[gap] = costs_.cost_ns[gap];
        costs_.cost_ns[gap] = 0;
      }
      between.clear();
      after_removed = removed[node] != 0;
    }
  }
}

Result<Applied> Editor::data_loader() {
  if (!(change_.value >= 0) || !std::isfinite(change_.value)) {
    return fail({ErrorKind::usage, "a factor below 0", "", std::nullopt, "Give 0 or more"});
  }
  for (std::uint32_t node = 0; node < graph_.size(); node++) {
    if (graph_.role[node] != NodeRole::data_loader) continue;
    count(node);
    costs_.cost_ns[node] = times(costs_.cost_ns[node], change_.value);
    if (change_.value == 0) remove_waits(node);
  }
  if (out_.calls > 0) return std::move(out_);
  return fail(nothing("no wait for a data loader was recorded",
                      "Record with stepscope run, or torch.profiler around a loop over a DataLoader"));
}

// Nothing waits for communication any more, and it stands beside its lane; it still ends before its step does.
Result<Applied> Editor::overlap() {
  std::vector<std::uint8_t> communicates(graph_.size(), 0);
  for (std::uint32_t node = 0; node < graph_.size(); node++) {
    if (graph_.role[node] == NodeRole::communicate) count(node);
    communicates[node] = graph_.role[node] == NodeRole::communicate || graph_.role[node] == NodeRole::arrival ? 1 : 0;
  }
  if (out_.calls == 0) return fail(nothing("no communication was recorded", "Record a run of several ranks"));
  std::vector<std::uint32_t> last(graph_.lanes.size(), kNone), last_other(graph_.lanes.size(), kNone);
  for (std::uint32_t node = 0; node < graph_.size(); node++) {
    const std::uint32_t lane = graph_.lane[node];
    if (lane != kNone && costs_.before[node] != kNone) {
      const std::uint32_t before = communicates[node] != 0 ? last[lane] : last_other[lane];
      costs_.before[node] = before;
    }
    if (lane != kNone) (communicates[node] != 0 ? last : last_other)[lane] = node;
    for (std::uint32_t e = graph_.edge_begin[node]; e < graph_.edge_begin[node + 1]; e++) {
      const std::uint32_t from = graph_.edges[e].from;
      const bool meets = graph_.role[node] == NodeRole::meeting || graph_.role[from] == NodeRole::meeting;
      if (communicates[from] != 0 && communicates[node] == 0 && !meets) costs_.dropped[e] = 1;
    }
  }
  out_.notes.push_back("Communication has the whole step to end in, as if nothing in it needed the result.");
  return std::move(out_);
}

Result<Applied> Editor::bandwidth() {
  bool one_size = false, alone = false;
  for (const CommModel& model : models_) {
    for (const std::uint32_t node : model.nodes) {
      count(node);
      costs_.cost_ns[node] = scaled_transfer(model, costs_.cost_ns[node], 1 / change_.value, 1);
    }
    one_size = one_size || !model.parted;
    alone = alone || !model.met;
  }
  if (out_.calls == 0) return fail(nothing("no communication was recorded", "Record a run of several ranks"));
  if (one_size) {
    out_.notes.push_back(
        "Latency and bandwidth cannot be told apart where the sizes of a kind of collective are not four times apart: "
        "all of its time was taken for bandwidth.");
  }
  if (alone) {
    out_.notes.push_back(
        "Ranks that were not opened: the time of their collectives holds the wait for them, which "
        "more bandwidth does not shorten.");
  }
  return std::move(out_);
}

// By how much the parts of a transfer grow from `from` ranks to `to`; nothing: the algorithm is not known.
std::optional<Editor::Growth> Editor::growth(CollectiveKind kind, std::int64_t from, std::int64_t to) const {
  const auto now = bus_factor(kind, from), then = bus_factor(kind, to);
  if (from < 2 || !now || !then || *now <= 0) return std::nullopt;
  if (change_.network.dimensions.empty()) {
    return Growth{*then / *now, static_cast<double>(to - 1) / static_cast<double>(from - 1)};
  }
  const NetworkTime before = network_time(change_.network, kind, from);
  const NetworkTime after = network_time(change_.network, kind, to);
  const double bytes = before.ns_per_byte > 0 ? after.ns_per_byte / before.ns_per_byte : 1;
  return Growth{bytes, 1, after.latency_ns - before.latency_ns};
}

Result<Applied> Editor::ranks() {
  const auto to = static_cast<std::int64_t>(change_.value);
  if (!change_.network.dimensions.empty() && places(change_.network) < to) {
    return fail({ErrorKind::usage,
                 "the network has place for " + std::to_string(places(change_.network)) + " ranks, not for " +
                     std::to_string(to),
                 change_.network.name, std::nullopt, "Raise its npus_count, or ask for fewer ranks"});
  }
  std::int64_t unknown = 0, recorded = 0;
  double most = 1;
  std::vector<double> reached;
  for (const CommModel& model : models_) {
    const auto grows = growth(model.kind, model.group_size, to);
    if (!grows) {
      unknown += static_cast<std::int64_t>(model.nodes.size());
      continue;
    }
    recorded = std::max(recorded, model.group_size);
    most = std::max(most, grows->bytes);
    const NetworkTime ideal = network_time(change_.network, model.kind, model.group_size);
    for (std::size_t i = 0; i < model.nodes.size(); i++) {
      const std::uint32_t node = model.nodes[i];
      const auto cost = static_cast<double>(graph_.costs.cost_ns[node]);
      if (model.bytes[i] > 0 && cost > 0) {
        reached.push_back((ideal.latency_ns + ideal.ns_per_byte * static_cast<double>(model.bytes[i])) / cost);
      }
      count(node);
      costs_.cost_ns[node] = scaled_transfer(model, costs_.cost_ns[node], grows->bytes, grows->latency) +
                             std::llround(std::max(grows->more_ns, 0.0));
    }
  }
  if (out_.calls == 0) {
    return fail(nothing("no collective whose group is known was recorded",
                        "Record a run of two ranks or more and give the files of all"));
  }
  if (change_.network.dimensions.empty()) {
    out_.notes.push_back("A ring of " + std::to_string(to) + " ranks in place of " + std::to_string(recorded) +
                         ": bytes per rank as its algorithm has them, latency by its steps, the same links.");
  } else {
    out_.notes.push_back(
        fmt::format("{} ranks in place of {} on the network of {}: transfers take up to {:.2f} times "
                    "as long for their bytes.",
                    to, recorded, change_.network.name, most));
    if (!reached.empty()) {
      std::sort(reached.begin(), reached.end());
      out_.notes.push_back(
          fmt::format("The transfers recorded reached {:.3g} % of what that network could do for {} "
                      "ranks; the same is taken for {}.",
                      100 * *quantile(reached, 0.5), recorded, to));
    }
  }
  add_clones(to);
  if (unknown > 0) {
    out_.notes.push_back(std::to_string(unknown) + " calls without a known group or algorithm are as they were.");
  }
  return std::move(out_);
}

void Editor::add_clones(std::int64_t ranks) {
  const MoreRanks more = more_ranks(run_, graph_, costs_, ranks);
  if (more.steps == 0) {
    if (ranks > static_cast<std::int64_t>(timelines(run_).size())) {
      out_.notes.push_back(
          "How much ranks differ is unknown where none is seen to wait for another: they are taken to "
          "come together.");
    }
    return;
  }
  for (std::size_t node = 0; node < more.late_ns.size(); node++) costs_.cost_ns[node] += more.late_ns[node];
  out_.notes.push_back(
      fmt::format("Each further rank takes its steps as long as one of the {} recorded took: its "
                  "collectives begin {:.3g} ms later per step in all.",
                  more.steps, static_cast<double>(more.late_per_step_ns) / 1e6));
  if (more.ranks < ranks) {
    out_.notes.push_back(fmt::format("{} of the {} were played, as many as fit: the last of more comes a little later.",
                                     more.ranks, ranks));
  }
}

// The launch of a kernel that became part of another: the host does not make it, unless it launches others too (a
// graph). `launched`: per node how many it launches.
void Editor::take_launch(std::uint32_t node, std::vector<std::uint32_t>& launched) {
  for (std::uint32_t e = graph_.edge_begin[node]; e < graph_.edge_begin[node + 1]; e++) {
    const Edge& edge = graph_.edges[e];
    if (edge.why != WaitEvidence::launch || costs_.dropped[e] != 0) continue;
    if (--launched[edge.from] == 0 && graph_.role[edge.from] == NodeRole::launch) costs_.cost_ns[edge.from] = 0;
    costs_.dropped[e] = 1;
  }
}

Result<Applied> Editor::fuse() {
  const Result<Selection> found = selected();
  if (!found) return fail(found.error());
  out_.longer_ns.assign(graph_.size(), 0);
  std::vector<std::uint32_t> launched(graph_.size(), 0);
  for (std::size_t e = 0; e < graph_.edges.size(); e++) {
    if (graph_.edges[e].why == WaitEvidence::launch && costs_.dropped[e] == 0) launched[graph_.edges[e].from]++;
  }
  std::uint64_t fused = 0;
  for (const Lane& lane : graph_.lanes) {
    if (!lane.device) continue;
    const Column<StepId>& steps = run_.traces[lane.trace].device.step;
    std::uint32_t first = kNone;  // one kernel in its place: between the longest of them and all of them
    std::int64_t longest = 0, sum = 0;
    for (const std::uint32_t node : lane.nodes) {
      const bool arrival = graph_.role[node] == NodeRole::arrival;
      if (found->nodes[node] == 0) first = kNone;
      if (first != kNone && steps[graph_.row[node]] != steps[graph_.row[first]]) first = kNone;
      if (found->nodes[node] == 0 || (arrival && first == kNone)) continue;
      if (first == kNone) {
        first = node;
        longest = sum = costs_.cost_ns[node];
        continue;
      }
      longest = std::max(longest, costs_.cost_ns[node]);
      sum += costs_.cost_ns[node];
      costs_.cost_ns[first] = longest;
      out_.longer_ns[first] = sum - longest;
      costs_.cost_ns[node] = 0;
      fused += arrival ? 0 : 1;
      take_launch(node, launched);
      remove_waits(node);
    }
  }
  if (fused == 0) {
    return fail(nothing("no two neighbors on a stream are '" + change_.target + "'",
                        "See stepscope report PATH --only sequences for kernels that follow each other"));
  }
  out_.notes.push_back(std::to_string(fused) +
                       " launches less; a fused kernel takes between the longest of its parts and all of them.");
  return std::move(out_);
}

Result<Applied> Editor::no_waits() {
  for (std::uint32_t node = 0; node < graph_.size(); node++) {
    if (!wait_no_longer(graph_, node, costs_)) continue;
    out_.calls++;
    out_.host_ns += graph_.start_ns[node] - graph_.end_ns(costs_.before[node]);
  }
  if (out_.calls > 0) return std::move(out_);
  return fail(nothing("the host never waited for the device", "Look at stepscope report PATH --only critical_path"));
}

Result<Applied> Editor::level_rank() {
  for (std::uint32_t node = 0; node < graph_.size(); node++) {
    if (graph_.role[node] != NodeRole::meeting) continue;
    for (std::uint32_t e = graph_.edge_begin[node]; e < graph_.edge_begin[node + 1]; e++) {
      const Lane& lane = graph_.lanes[graph_.lane[graph_.edges[e].from]];
      if (run_.traces[lane.trace].rank.rank != change_.rank || costs_.dropped[e] != 0) continue;
      costs_.dropped[e] = 1;
      out_.calls++;
    }
  }
  if (out_.calls > 0) return std::move(out_);
  const auto traces = timelines(run_);
  const bool is_there =
      std::any_of(traces.begin(), traces.end(), [&](const Trace& trace) { return trace.rank.rank == change_.rank; });
  if (!is_there) {
    return fail(nothing("there is no rank " + std::to_string(change_.rank.value_or(0)), "Give the files of all ranks"));
  }
  if (traces.size() < 2) return fail(nothing("one rank was opened", "Give the files of all ranks"));
  return fail(nothing("no collective is known to have met on several ranks, or their clocks could not be fitted",
                      "See stepscope report PATH --only ranks"));
}

}  // namespace

Result<Applied> apply(const Change& change, const Run& run, const ReplayGraph& graph,
                      const std::vector<CommModel>& models, Costs& costs) {
  return Editor(change, run, graph, models, costs).edit();
}

bool wait_no_longer(const ReplayGraph& graph, std::uint32_t node, Costs& costs) {
  if (costs.before[node] == kNone) return false;
  bool waited = false;
  for (std::uint32_t e = graph.edge_begin[node]; e < graph.edge_begin[node + 1]; e++) {
    if (graph.edges[e].why != WaitEvidence::sync_call && graph.edges[e].why != WaitEvidence::polled) continue;
    costs.dropped[e] = 1;
    waited = true;
  }
  return waited;
}

}  // namespace stepscope::simulate
