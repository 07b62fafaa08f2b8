#include "diagnose/device_work.h"

#include <algorithm>

#include "model/host_names.h"
#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

// What asked for a slice: from the operator around it outwards, as long as each is not much longer than what is in it.
SliceId asker_around(const Trace& trace, SliceId slice) {
  constexpr std::int64_t kMostTimes = 2;
  SliceId asker = SliceId::none;
  std::int64_t inside_ns = 0;
  for (SliceId at = trace.slices.parent[slice]; at != SliceId::none; at = trace.slices.parent[at]) {
    if (trace.kind(at) != SliceKind::cpu_op) continue;
    if (asker != SliceId::none && trace.slices.dur_ns[at] > kMostTimes * inside_ns) break;
    asker = at;
    inside_ns = trace.slices.dur_ns[at];
  }
  return asker;
}

SliceId operator_around(const Trace& trace, SliceId slice) {
  while (slice != SliceId::none && trace.kind(slice) != SliceKind::cpu_op) slice = trace.slices.parent[slice];
  return slice;
}

}  // namespace

DeviceWork::DeviceWork(const Case& about) {
  for (const Trace& trace : timelines(about.run)) find_users(trace, of_[&trace]);
  const simulate::ReplayGraph& graph = about.predictor.graph();
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (!about.is_work(node) || !graph.lanes[graph.lane[node]].device) continue;
    const Trace& trace = about.run.traces[graph.lanes[graph.lane[node]].trace];
    if (graph.role[node] == simulate::NodeRole::arrival) continue;
    nodes_[trace.device.device_class[graph.row[node]]].push_back(node);
    for (const simulate::Edge& edge : graph.edges_of(node)) {
      if (edge.why == WaitEvidence::launch) launch_.emplace(node, edge.from);
    }
  }
  find_waits(about);
  find_waits_for_input(about);
}

void DeviceWork::find_users(const Trace& trace, Of& out) {
  out.uses_device.assign(trace.slices.size(), false);
  const auto mark = [&](SliceId slice) {
    for (SliceId at = slice; at != SliceId::none; at = trace.slices.parent[at]) {
      if (out.uses_device[static_cast<std::size_t>(at)]) break;  // so do those around it
      out.uses_device[static_cast<std::size_t>(at)] = true;
    }
  };
  for (std::size_t row = 0; row < trace.device.size(); row++) {
    const SliceId op = trace.device.op[row];
    if (op == SliceId::none || !is_device_work(trace.kind(trace.device.slice[row]))) continue;
    out.linked = out.linked || trace.kind(op) == SliceKind::cpu_op;
    mark(op);
  }
  for (std::size_t slice = 0; slice < trace.slices.size(); slice++) {
    if (trace.kind(static_cast<SliceId>(slice)) == SliceKind::runtime) mark(static_cast<SliceId>(slice));
  }
}

void DeviceWork::find_waits(const Case& about) {
  const simulate::ReplayGraph& graph = about.predictor.graph();
  std::unordered_map<std::uint32_t, std::size_t> first_piece;  // of the path, per node
  for (std::size_t i = 0; i < about.path.size(); i++) first_piece.try_emplace(about.path[i].node, i);
  // Per lane: how much earlier the thread would be without the waits so far, less what the device won by that.
  std::vector<std::int64_t> lead_ns(graph.lanes.size(), 0);
  const std::vector<std::int64_t>& started_ns = about.now.played.start_ns;
  const auto on_device = [&](std::size_t i) { return graph.lanes[graph.lane[about.path[i].node]].device; };
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (!about.is_work(node) || graph.lanes[graph.lane[node]].device || graph.slice[node] == SliceId::none) continue;
    if (graph.role[node] == simulate::NodeRole::launch &&
        launch_kind(about.work(node).name()) == LaunchKind::copy) {  // out of pageable memory it waits within the call
      lead_ns[graph.lane[node]] += std::max<std::int64_t>(about.cost_ns(node) - kAskForCopyNs, 0);
    }
    for (const simulate::Edge& edge : graph.edges_of(node)) {
      if (edge.why != WaitEvidence::sync_call || graph.lane[edge.from] == simulate::kNone) continue;
      const Trace& trace = about.run.traces[graph.lanes[graph.lane[node]].trace];
      DeviceWait wait{.node = node, .waited_for = edge.from, .call = graph.slice[node]};
      wait.asker = asker_around(trace, wait.call);
      const std::uint32_t before = graph.costs.before[node];
      std::int64_t& lead = lead_ns[graph.lane[node]];
      // Of the steps without what recording adds: a host that is faster waits the longer.
      if (before != simulate::kNone) lead += started_ns[node] - (started_ns[before] + about.cost_ns(before));
      const auto piece = first_piece.find(node);  // the wait binds where the path comes from a device
      if (piece != first_piece.end() && piece->second > 0 && on_device(piece->second - 1)) {
        for (std::size_t i = piece->second; i < about.path.size() && !on_device(i) && lead > 0; i++) {
          lead -= about.path[i].until_ns - about.path[i].from_ns;
          if (wait.late.empty() || wait.late.back() != about.path[i].node) wait.late.push_back(about.path[i].node);
        }
      }
      const SliceId op = operator_around(trace, wait.call);
      of_[&trace].waits_in[op == SliceId::none ? wait.call : op].push_back(waits_.size());
      waits_.push_back(std::move(wait));
      break;  // the others of this call ended before
    }
  }
}

std::uint32_t DeviceWork::launch_of(std::uint32_t node) const {
  const auto found = launch_.find(node);
  return found == launch_.end() ? simulate::kNone : found->second;
}

const std::vector<std::size_t>& DeviceWork::waits_of(const Case& about, std::uint32_t node) const {
  static const std::vector<std::size_t> kNothing;
  const simulate::ReplayGraph& graph = about.predictor.graph();
  const Trace& trace = about.run.traces[graph.lanes[graph.lane[node]].trace];
  const SliceId op = asker_of(about, node);
  const auto& all = of(trace).waits_in;
  const auto found = all.find(op == SliceId::none ? trace.device.launch[graph.row[node]] : op);
  return found == all.end() ? kNothing : found->second;
}

std::vector<const DeviceWait*> DeviceWork::own_waits(const Case& about, std::uint32_t node) const {
  std::vector<const DeviceWait*> out;
  for (const std::size_t at : waits_of(about, node)) out.push_back(&waits_[at]);
  return out;
}

void DeviceWork::find_waits_for_input(const Case& about) {
  for (const std::uint32_t node : nodes(DeviceClass::memory_copy)) {
    const Work work = about.work(node);
    const std::int64_t bytes = work.trace->device.bytes[about.predictor.graph().row[node]];
    if (!copy_way(work.name()).to_device() || (bytes != kAbsent && bytes <= kSmallCopyBytes)) continue;
    for (const std::size_t at : waits_of(about, node)) waits_[at].for_input = true;
  }
}

const DeviceWork& device_work(const Case& about) {
  return about.shared<DeviceWork>([](const Case& one) { return DeviceWork(one); });
}

const Retries& allocator_retries(const Case& about) {
  return about.shared<Retries>([](const Case& of) {
    Retries out;
    for (std::uint32_t node = 0; node < of.size(); node++) {
      if (!of.is_work(node)) continue;
      const Work work = of.work(node);
      // Memory that is given back to torch stays with torch: in an operator only its allocator gives it to the device.
      if (!work.device && work.operation != SliceId::none && gives_memory_back(work.name())) {
        out.emplace(work.trace, work.operation);
      }
    }
    return out;
  });
}

std::int64_t least_capability(const Trace& trace) {
  std::int64_t least = trace.devices.empty() ? 0 : trace.devices.front().compute_major;
  for (const DeviceInfo& one : trace.devices) least = std::min(least, one.compute_major);
  return least;
}

SliceId asker_of(const Case& about, std::uint32_t node) {
  const simulate::ReplayGraph& graph = about.predictor.graph();
  const Trace& trace = about.run.traces[graph.lanes[graph.lane[node]].trace];
  return operator_around(trace, trace.device.op[graph.row[node]]);
}

std::string_view asker_name(const Case& about, std::uint32_t node, const Work& work) {
  const SliceId op = asker_of(about, node);
  return op == SliceId::none ? work.name() : work.trace->name(op);
}

}  // namespace stepscope::diagnose
