#include "diagnose/passes.h"

#include <algorithm>

#include "model/windows.h"

namespace stepscope::diagnose {
namespace {

template <class Map>
const typename Map::mapped_type& found_in(const Map& map, SliceId key) {
  static const typename Map::mapped_type kNothing;
  const auto found = map.find(key);
  return found == map.end() ? kNothing : found->second;
}

}  // namespace

bool is_backward(std::string_view name) { return name.starts_with("autograd::engine::"); }

bool goes_back(const Trace& trace) {
  for (std::size_t row = 0; row < trace.ops.size(); row++) {
    if (is_backward(trace.name(trace.ops.slice[row]))) return true;
  }
  return false;
}

bool is_recorded(const Trace& trace, std::size_t row) {
  const Ops& ops = trace.ops;
  return ops.sequence.has(row) && ops.sequence[row] >= 0 && (!ops.fwd_thread.has(row) || ops.fwd_thread[row] == 0);
}

Passes::Passes(const Case& about) {
  for (std::uint32_t node = 0; node < about.size(); node++) {
    if (!about.is_work(node)) continue;
    const Work work = about.work(node);
    if (work.operation != SliceId::none) traces_[work.trace].nodes[work.operation].push_back(node);
  }
  for (const Trace& trace : timelines(about.run)) {
    Of& of = traces_[&trace];
    for (const stepscope::Backward& pair : trace.backward) {
      const SliceId forward = about.outermost(trace, pair.forward), backward = about.outermost(trace, pair.backward);
      if (forward == SliceId::none || backward == SliceId::none || forward == backward) continue;
      std::vector<SliceId>& all = of.backward[forward];
      of.reason.try_emplace(backward, forward);
      if (std::find(all.begin(), all.end(), backward) == all.end()) all.push_back(backward);
    }
  }
}

const std::vector<std::uint32_t>& Passes::nodes(const Trace& trace, SliceId outermost) const {
  const auto of = traces_.find(&trace);
  static const std::vector<std::uint32_t> kNothing;
  return of == traces_.end() ? kNothing : found_in(of->second.nodes, outermost);
}

const std::vector<SliceId>& Passes::backward(const Trace& trace, SliceId outermost) const {
  const auto of = traces_.find(&trace);
  static const std::vector<SliceId> kNothing;
  return of == traces_.end() ? kNothing : found_in(of->second.backward, outermost);
}

std::vector<std::uint32_t> Passes::backward_nodes(const Trace& trace, SliceId outermost) const {
  std::vector<std::uint32_t> out;
  for (const SliceId one : backward(trace, outermost)) {
    const std::vector<std::uint32_t>& of_it = nodes(trace, one);
    out.insert(out.end(), of_it.begin(), of_it.end());
  }
  return out;
}

SliceId Passes::reason(const Trace& trace, SliceId outermost) const {
  const auto of = traces_.find(&trace);
  if (of == traces_.end()) return outermost;
  const auto found = of->second.reason.find(outermost);
  return found == of->second.reason.end() ? outermost : found->second;
}

const Passes& passes(const Case& about) {
  return about.shared<Passes>([](const Case& one) { return Passes(one); });
}

Code reason_code(const Case& about, const Work& work) {
  if (work.operation == SliceId::none) return about.code(work);
  return about.code(*work.trace, passes(about).reason(*work.trace, work.operation));
}

}  // namespace stepscope::diagnose
