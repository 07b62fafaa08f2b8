// What every step copies to the device again although it was there the step before: a mask, a table of positions, a
// weight. That it is the same shows as the same operator at the same place, with as many bytes, in every step; a batch
// is copied after the data loader gave it and before anything is computed, outside of the model.
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/device_work.h"
#include "diagnose/gathered.h"

namespace stepscope::diagnose::causes {
namespace {

// So many steps in a row are no accident.
constexpr std::size_t kLeastStepsWithCopies = 3;
// Asking for it and going on takes as long with so little.
constexpr std::int64_t kCallOfCopyNs = 2'000;

class RepeatedCopies {
 public:
  explicit RepeatedCopies(const Case& about) : about_(about), device_(device_work(about)) { find_first_work(); }

  void find(std::vector<Diagnosis>& out) {
    for (const std::uint32_t node : device_.nodes(DeviceClass::memory_copy)) sort_in(node);
    Gathered gathered(about_);
    std::int64_t copies = 0, bytes = 0;
    for (const auto& [key, found] : groups_) {
      if (!in_every_step(*std::get<0>(key), found.per_step)) continue;
      for (const std::uint32_t node : found.nodes) add(node, gathered);
      if (std::get<0>(key) != &about_.trace) continue;
      copies += static_cast<std::int64_t>(found.nodes.size());
      bytes += std::get<2>(key) * static_cast<std::int64_t>(found.nodes.size());
    }
    if (!gathered.worth_saying()) return;
    out.push_back(gathered.diagnosis(
        {.cause = "copy",
         .sentence = "The same operator copies as many bytes to the device in every step",
         .next = "Keep on the device what does not change: register_buffer() or a tensor made once with device=…; make "
                 "there what can be made there (torch.arange(n, device=device))",
         .doubt = "that the bytes are the same ones is inferred from their number"}));
    auto& evidence = out.back().finding.evidence;
    evidence.push_back({.text = "Copies per step", .value = copies / about_.steps, .unit = Unit::count});
    evidence.push_back({.text = "Bytes per step", .value = bytes / about_.steps, .unit = Unit::bytes});
  }

 private:
  using Key = std::tuple<const Trace*, std::string_view, std::int64_t>;  // operator, bytes
  struct Group {
    std::vector<std::uint32_t> nodes;
    std::map<StepId, int> per_step;
  };

  std::int64_t asked_at(const Trace& trace, std::uint32_t row) const {
    const SliceId launch = trace.device.launch[row];
    return trace.slices.start_ns[launch == SliceId::none ? trace.device.slice[row] : launch];
  }

  void find_first_work() {
    for (const std::uint32_t node : device_.nodes(DeviceClass::compute)) {
      const Work work = about_.work(node);
      const std::uint32_t row = about_.predictor.graph().row[node];
      const auto [at, is_new] =
          first_work_.try_emplace({work.trace, work.trace->device.step[row]}, std::numeric_limits<std::int64_t>::max());
      at->second = std::min(at->second, asked_at(*work.trace, row));
      if (const std::uint32_t launch = device_.launch_of(node); launch != simulate::kNone) computing_.insert(launch);
    }
  }

  // On the thread that asks for it: the data loader gave something since anything was last launched that computes.
  bool is_behind_loader(std::uint32_t copy) const {
    const std::uint32_t launch = device_.launch_of(copy);
    if (launch == simulate::kNone) return false;
    const simulate::ReplayGraph& graph = about_.predictor.graph();
    for (std::uint32_t at = graph.costs.before[launch]; at != simulate::kNone; at = graph.costs.before[at]) {
      if (graph.role[at] == simulate::NodeRole::data_loader) return true;
      if (computing_.contains(at)) return false;
    }
    return false;
  }

  bool may_be_batch(std::uint32_t node, const Work& work, std::uint32_t row) const {
    if (is_behind_loader(node)) return true;
    const auto first = first_work_.find({work.trace, work.trace->device.step[row]});
    if (first == first_work_.end()) return true;
    if (asked_at(*work.trace, row) > first->second) return false;
    const Code code = about_.code(work);
    return std::none_of(code.stack.begin(), code.stack.end(), [](const CodeFrame& frame) { return frame.is_module(); });
  }

  void sort_in(std::uint32_t node) {
    const Work work = about_.work(node);
    const std::uint32_t row = about_.predictor.graph().row[node];
    const std::int64_t bytes = work.trace->device.bytes[row];
    if (!copy_way(work.name()).to_device() || bytes == kAbsent || work.trace->device.step[row] == StepId::none) return;
    if (may_be_batch(node, work, row)) return;
    Group& group = groups_[{work.trace, asker_name(about_, node, work), bytes}];
    group.nodes.push_back(node);
    group.per_step[work.trace->device.step[row]]++;
  }

  // As often in each of the whole steps.
  static bool in_every_step(const Trace& trace, const std::map<StepId, int>& per_step) {
    std::size_t steps = 0;
    int copies = 0;
    for (std::size_t i = 0; i < trace.steps.size(); i++) {
      if (trace.steps[i].partial) continue;
      const auto here = per_step.find(static_cast<StepId>(i));
      if (here == per_step.end() || (steps > 0 && here->second != copies)) return false;
      copies = here->second;
      steps++;
    }
    return steps >= kLeastStepsWithCopies;
  }

  // With the copy goes all that the operator does for it on the host.
  void add(std::uint32_t node, Gathered& gathered) const {
    const Work work = about_.work(node);
    const std::string_view name = asker_name(about_, node, work);
    gathered.add(node, work, name, 0, 0);
    if (const std::uint32_t launch = device_.launch_of(node); launch != simulate::kNone) {
      gathered.add(launch, about_.work(launch), name, 0, 0, kCallOfCopyNs);
    }
    for (const DeviceWait* wait : device_.own_waits(about_, node)) {
      gathered.add_wait(wait->node, about_.work(wait->node), name, wait->late);
    }
  }

  const Case& about_;
  const DeviceWork& device_;
  std::map<std::pair<const Trace*, StepId>, std::int64_t> first_work_;
  std::unordered_set<std::uint32_t> computing_;  // nodes that launch what computes
  std::map<Key, Group> groups_;
};

}  // namespace

Cause repeated_copies_cause() {
  return {"repeated_copies", "The same copied to the device in every step",
          [](const Case& about, std::vector<Diagnosis>& out) { RepeatedCopies(about).find(out); }};
}

}  // namespace stepscope::diagnose::causes
