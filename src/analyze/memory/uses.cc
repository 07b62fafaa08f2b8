#include "analyze/memory/uses.h"

#include <algorithm>
#include <array>

#include "base/name_verdicts.h"
#include "model/lookup.h"

namespace stepscope::analyze::memory {
namespace {

// Operators that cuBLAS, cuDNN, CUB and their kin compute, with scratch memory of their own.
std::uint8_t by_a_library(std::string_view name) {
  constexpr std::array<std::string_view, 18> kParts{
      "convolution", "aten::mm",   "addmm", "bmm",  "aten::mv", "addmv",      "_scaled_mm", "_grouped_mm", "attention",
      "_rnn",        "aten::sort", "topk",  "scan", "linalg_",  "aten::_fft", "unique",     "nonzero",     "index_put"};
  return std::any_of(kParts.begin(), kParts.end(), [&](auto part) { return name.find(part) != name.npos; }) ? 1 : 0;
}

// Where modules get their parameters: nn.Module.to, cuda, float … and the initialization of weights.
std::uint8_t makes_modules(std::string_view frame) {
  const bool module = frame.find("torch/nn/modules/module.py(") != frame.npos && frame.ends_with(": _apply");
  return module || frame.ends_with(": reset_parameters") || frame.ends_with(": init_weights") ? 1 : 0;
}

std::uint8_t copies(std::string_view name) {
  return name == "aten::_to_copy" || name == "aten::to" || name == "aten::pin_memory" || name == "aten::copy_" ? 1 : 0;
}

using Verdicts = NameVerdicts<std::uint8_t, std::uint8_t (*)(std::string_view)>;

class Judge {
 public:
  explicit Judge(const Held& held) : held_(held), trace_(*held.trace) {
    has_backward_ = std::any_of(trace_.slices.phase.begin(), trace_.slices.phase.end(),
                                [](std::uint8_t phase) { return phase == static_cast<std::uint8_t>(Phase::backward); });
  }

  Use use(std::size_t at) {
    const Phase phase = held_.phase(at);
    if (phase == Phase::communication) return {MemoryCategory::communication, Evidence::collective};
    if (freed_within_operator(at)) {
      const bool library = library_(trace_.slices.name[held_.op[at]]) == 1;
      return library ? Use{MemoryCategory::workspace, Evidence::library_call}
                     : Use{MemoryCategory::temporary, Evidence::operator_call};
    }
    switch (phase) {
      case Phase::optimizer: return of_optimizer(at);
      case Phase::backward: return of_backward(at);
      case Phase::forward: return of_forward(at);
      case Phase::dataloader: return {MemoryCategory::input, Evidence::loaded};
      default: return outside(at);
    }
  }

 private:
  const Allocation& allocation(std::size_t at) const { return held_.memory.allocations[at]; }
  bool freed(std::size_t at) const { return allocation(at).free_event != Allocation::never; }

  Phase phase_of_free(std::size_t at) const {
    const std::uint32_t event = allocation(at).free_event;
    const SliceId slice = slice_at(trace_, trace_.memory.track[event], trace_.memory.time_ns[event]);
    return slice == SliceId::none ? Phase::other : static_cast<Phase>(trace_.slices.phase[slice]);
  }

  bool freed_in_same_step(std::size_t at) const {
    return freed(at) && trace_.step_at(held_.start_ns(at)) == trace_.step_at(allocation(at).freed_ns);
  }

  bool freed_in(std::size_t at, Phase phase) const { return freed_in_same_step(at) && phase_of_free(at) == phase; }

  bool freed_within_operator(std::size_t at) const {
    const SliceId op = held_.op[at];
    if (op == SliceId::none || !freed(at) || trace_.kind(op) != SliceKind::cpu_op) return false;
    return trace_.memory.track[allocation(at).free_event] == trace_.slices.track[op] &&
           allocation(at).freed_ns <= trace_.slices.end_ns(op);
  }

  Use of_optimizer(std::size_t at) const {
    if (freed_in(at, Phase::optimizer)) return {MemoryCategory::temporary, Evidence::optimizer_freed};
    return {MemoryCategory::optimizer_state, Evidence::optimizer_kept};
  }

  Use of_backward(std::size_t at) const {
    if (freed_in(at, Phase::backward)) return {MemoryCategory::temporary, Evidence::backward_freed};
    return {MemoryCategory::gradient, Evidence::backward_kept};
  }

  // Nothing is kept for a backward pass that never comes: what then outlives forward is not known.
  Use of_forward(std::size_t at) const {
    if (freed_in(at, Phase::forward)) return {MemoryCategory::temporary, Evidence::forward_freed};
    if (!has_backward_ || !freed(at)) return {};
    return {MemoryCategory::activation, Evidence::forward_kept};
  }

  Use outside(std::size_t at) {
    for (SliceId slice = held_.around[at]; slice != SliceId::none; slice = trace_.slices.parent[slice]) {
      if (trace_.kind(slice) == SliceKind::python_function && modules_(trace_.slices.name[slice]) == 1)
        return {MemoryCategory::parameter, Evidence::made_by_module};
    }
    for (SliceId slice = held_.around[at]; slice != SliceId::none; slice = trace_.slices.parent[slice]) {
      if (copies_(trace_.slices.name[slice]) == 1 && freed(at)) return {MemoryCategory::input, Evidence::loaded};
    }
    return {};
  }

  const Held& held_;
  const Trace& trace_;
  bool has_backward_ = false;
  Verdicts library_{trace_.strings, 2, by_a_library};
  Verdicts modules_{trace_.strings, 2, makes_modules};
  Verdicts copies_{trace_.strings, 2, copies};
};

}  // namespace

std::vector<Use> uses_of(const Held& held) {
  Judge judge(held);
  std::vector<Use> uses;
  for (std::size_t at = 0; at < held.memory.allocations.size(); at++) uses.push_back(judge.use(at));
  return uses;
}

}  // namespace stepscope::analyze::memory
