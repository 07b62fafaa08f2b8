#include "simulate/predict.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "model/normal_name.h"

namespace stepscope::simulate {

Predictor::Predictor(const Run& run)
    : run_(run), graph_(replay_graph(run)), windows_(step_windows(run, graph_)), models_(comm_models(run, graph_)) {
  frozen_ = play(graph_, graph_.costs, Waits::frozen);
  freed_ = play(graph_, graph_.costs, Waits::freed);
}

std::string Predictor::lane_name(std::uint32_t number) const {
  const Lane& lane = graph_.lanes[number];
  const Trace& trace = run_.traces[lane.trace];
  const Track& track = trace.tracks[static_cast<std::size_t>(lane.track)];
  std::string name = lane.device ? "stream " : "thread ";
  name += track.thread == StringId::none ? "?" : std::string(trace.strings[track.thread]);
  if (name.starts_with("stream stream ")) name.erase(0, 7);
  return name + " of rank " + std::to_string(trace.rank.rank);
}

Predictor::Longest Predictor::longest(const Costs& costs, const Played& played, std::span<const Change> changes) const {
  Longest out;
  const bool overlapped = std::any_of(changes.begin(), changes.end(),
                                      [](const Change& change) { return change.kind == ChangeKind::overlap; });
  for (const StepWindow& window : windows_) {
    const std::int64_t rank = run_.traces[window.trace].rank.rank;
    const bool leveled = std::any_of(changes.begin(), changes.end(), [&](const Change& change) {
      return change.kind == ChangeKind::level_rank && change.rank == rank;
    });
    if (leveled && windows_.size() > 1) continue;  // nobody says what became of it; the others do not wait for it
    const StepTime time = step_time(graph_, costs, played, window, overlapped);
    if (out.window == nullptr || time.step_ns > out.step_ns) out = {time.step_ns, &window, time};
  }
  return out;
}

namespace {

double ratio(std::int64_t before, std::int64_t after) {
  return after > 0 ? static_cast<double>(before) / static_cast<double>(after) : 0;
}

}  // namespace

Result<Prediction> Predictor::predict(std::span<const Change> changes, const Rewrite& rewrite) const {
  Prediction out;
  out.costs = graph_.costs;
  for (const Change& change : changes) {
    Result<Applied> applied = apply(change, run_, graph_, models_, out.costs);
    if (!applied) return fail(applied.error());
    out.applied.push_back(*std::move(applied));
    double total = 0;
    for (const std::int64_t cost : out.costs.cost_ns) total += static_cast<double>(cost);
    if (total > kMostNs) {
      return fail({ErrorKind::usage, "the changed run would take more than 30 years", "", std::nullopt,
                   "Give a smaller factor or time"});
    }
  }
  for (const Rewrite::Node& one : rewrite.nodes) {
    out.costs.cost_ns[one.node] = one.least_ns;
    if (one.most_ns > 0) continue;
    out.costs.wait_ns[one.node] = std::min<std::int64_t>(out.costs.wait_ns[one.node], 0);
    if (graph_.role[one.node] != NodeRole::communicate) continue;
    for (std::uint32_t e = graph_.edge_begin[one.node]; e < graph_.edge_begin[one.node + 1]; e++) {
      if (graph_.lane[graph_.edges[e].from] == kNone) out.costs.dropped[e] = 1;  // its ranks need not meet
    }
  }
  for (const std::uint32_t node : rewrite.no_wait) wait_no_longer(graph_, node, out.costs);
  const Longest best = longest(out.costs, play(graph_, out.costs, Waits::freed), changes);
  for (const Applied& applied : out.applied) {  // the slow end of what is not known exactly
    for (std::size_t node = 0; node < applied.longer_ns.size(); node++) {
      out.costs.cost_ns[node] += applied.longer_ns[node];
    }
  }
  for (const Rewrite::Node& one : rewrite.nodes) out.costs.cost_ns[one.node] = one.most_ns;  // the last one holds
  out.played = play(graph_, out.costs, Waits::frozen);
  const Longest now = longest(graph_.costs, frozen_, {}), now_freed = longest(graph_.costs, freed_, {});
  const Longest after = longest(out.costs, out.played, changes);
  if (now.window == nullptr || after.window == nullptr) {
    return fail({ErrorKind::unsupported, "no thread and no device work was recorded", "", std::nullopt,
                 "Record with stepscope run or torch.profiler"});
  }
  const bool is_changed = !changes.empty() || !rewrite.nodes.empty();
  if (is_changed && after.step_ns <= 0) {
    return fail({ErrorKind::not_found, "nothing is left of a step", "", std::nullopt,
                 "Change less: what remains has to take some time"});
  }
  out.frozen = ratio(now.step_ns, after.step_ns);
  // At the fast end a step may be gone altogether: then only what is known of the slow end is said.
  out.freed = best.step_ns > 0 ? ratio(now_freed.step_ns, best.step_ns) : out.frozen;
  out.now_ns = now.step_ns;
  std::tie(out.speedup_low, out.speedup_high) = std::minmax({out.frozen, out.freed});
  for (int i = 0; i < 2; i++) {
    const double speedup = i == 0 ? out.speedup_high : out.speedup_low;
    out.after_ns[i] = speedup > 0 ? static_cast<std::int64_t>(static_cast<double>(now.step_ns) / speedup) : 0;
  }
  out.window = *after.window;
  out.time = after.time;
  name_path(out);
  return out;
}

std::string Predictor::resource(const PathPart& part) const {
  const std::string rank = " of rank " + std::to_string(run_.traces[graph_.lanes[part.lane].trace].rank.rank);
  if (part.role == NodeRole::data_loader) return "the data loader" + rank;
  if (part.role == NodeRole::communicate) return "communication" + rank;
  const bool main =
      std::any_of(windows_.begin(), windows_.end(), [&](const StepWindow& window) { return window.lane == part.lane; });
  return main ? "the main thread" + rank : lane_name(part.lane);
}

// Walks back from the end of the last step, through what made each node begin when it did.
std::vector<PathPiece> Predictor::path_of(const Prediction& made) const {
  const Played& played = made.played;
  const std::int64_t start_ns = made.time.start_ns;
  std::vector<PathPiece> path;
  const auto add = [&](std::uint32_t node, std::int64_t from, std::int64_t until, bool handed_over) {
    from = std::max(from, start_ns);
    if (from < until && graph_.lane[node] != kNone) path.push_back({node, from, until, handed_over});
  };
  std::uint32_t node = made.time.last;
  std::int64_t at = made.time.end_ns;
  if (node == kNone) {  // the last node of the thread that began before the end
    const auto& nodes = graph_.lanes[made.window.lane].nodes;
    const auto after = std::upper_bound(nodes.begin(), nodes.end(), at,
                                        [&](std::int64_t time, std::uint32_t n) { return time < played.start_ns[n]; });
    node = after == nodes.begin() ? kNone : *(after - 1);
  }
  while (node != kNone && at > start_ns) {
    if (played.start_ns[node] < at) {
      add(node, played.start_ns[node], at, false);
      at = played.start_ns[node];
    }
    const Binding binds = binding_of(graph_, made.costs, played, node);
    if (binds.from == kNone) {  // its lane begins here: nothing shows what was before
      add(node, start_ns, at, true);
      break;
    }
    const std::int64_t reached = played.start_ns[binds.from] + (binds.from_start ? 0 : made.costs.cost_ns[binds.from]);
    if (reached < at) {
      add(graph_.lane[node] == kNone ? binds.from : node, reached, at, true);
      at = reached;
    }
    node = binds.from;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

// The path by names, and what has most of it.
void Predictor::name_path(Prediction& out) const {
  std::map<std::tuple<std::uint32_t, NodeRole, bool, std::string>, std::int64_t> parts;
  for (const PathPiece& piece : path_of(out)) {
    const std::uint32_t lane = graph_.lane[piece.node];
    const Trace& trace = run_.traces[graph_.lanes[lane].trace];
    const SliceId slice = graph_.slice[piece.node];
    std::string name = slice == SliceId::none ? "(nothing recorded)" : normal_name(trace.name(slice));
    const NodeRole recorded = graph_.role[piece.node];
    const NodeRole role = recorded == NodeRole::arrival ? NodeRole::communicate : recorded;
    parts[{lane, role, piece.handed_over, std::move(name)}] += piece.until_ns - piece.from_ns;
    out.path_ns += piece.until_ns - piece.from_ns;
  }
  std::map<std::string, std::int64_t> resources;
  for (auto& [key, time_ns] : parts) {
    const auto& [lane, role, handed_over, name] = key;
    out.path.push_back({lane, role, handed_over, name, time_ns});
    resources[resource(out.path.back())] += time_ns;
  }
  std::stable_sort(out.path.begin(), out.path.end(),
                   [](const PathPart& a, const PathPart& b) { return a.time_ns > b.time_ns; });
  const auto most = std::max_element(resources.begin(), resources.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == resources.end()) return;
  out.binds = most->first;
  out.binds_share = static_cast<double>(most->second) / static_cast<double>(out.path_ns);
}

void give_gain(Finding& finding, const Result<Prediction>& made, std::string how) {
  constexpr double kWorthTelling = 1.005;  // less is no gain
  if (!made) {
    finding.gain_reason = "Not predicted: " + made.error().message + ".";
  } else if (made->speedup_high < kWorthTelling) {
    finding.gain_reason = "None: the steps would still be bound by " + made->binds + ".";
  } else {
    finding.gain = Gain{.speedup_low = made->speedup_low,
                        .speedup_high = made->speedup_high,
                        .step_ns = made->now_ns,
                        .binds = made->binds,
                        .how = std::move(how)};
    finding.gain_reason.clear();
  }
}

}  // namespace stepscope::simulate
