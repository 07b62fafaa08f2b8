#include "snapshot/judgment.h"

#include <array>
#include <string>
#include <utility>

#include "model/memory_timeline.h"
#include "snapshot/passes.h"
#include "snapshot/stack_rules.h"

namespace stepscope::snapshot {
namespace {

constexpr std::array<std::string_view, 12> kLives{"",
                                                  "freed before the pass was over",
                                                  "freed before the first forward pass",
                                                  "alive when the backward pass began",
                                                  "freed in the backward pass",
                                                  "alive after the backward pass",
                                                  "alive after the optimizer's step",
                                                  "freed by zero_grad",
                                                  "run again in the backward pass",
                                                  "its module had returned, and no backward pass followed",
                                                  "never freed",
                                                  "memory ran out before the pass was over"};

std::string text(const CudaSnapshot& snapshot, std::uint32_t id) {
  return std::string(snapshot.strings[static_cast<StringId>(id)].substr(0, 200));
}

std::string name_of(const CudaSnapshot& snapshot, const Judgment& judgment) {
  if (judgment.category != MemoryCategory::unknown) return std::string(to_string(judgment.category));
  if (judgment.life == Life::undecided) {
    switch (static_cast<Pass>(judgment.label)) {
      case Pass::forward: return "forward pass, not over";
      case Pass::backward: return "backward pass, not over";
      default: return "optimizer step, not over";
    }
  }
  switch (judgment.basis) {
    case Basis::compile_context: return "compiled: " + text(snapshot, judgment.label);
    case Basis::metadata: return "note: " + text(snapshot, judgment.label);
    case Basis::range: return "range: " + text(snapshot, judgment.label);
    case Basis::pool: {
      const MemoryPool& pool = snapshot.pools[judgment.label];
      return "private pool " + std::to_string(pool.first) + ":" + std::to_string(pool.second);
    }
    default: return std::string(to_string(MemoryCategory::unknown));
  }
}

std::string evidence_of(const CudaSnapshot& snapshot, const Judgment& judgment) {
  const std::string life(kLives[static_cast<std::size_t>(judgment.life)]);
  const auto with_life = [&](std::string text) { return life.empty() ? text : std::move(text) + "; " + life; };
  switch (judgment.basis) {
    case Basis::stack:
      return with_life(judgment.rule == 0 ? std::string("the stack of its forward operator")
                                          : "stack: " + std::string(stack_rules()[judgment.rule].evidence));
    case Basis::mark:
      return with_life(judgment.life == Life::undecided ? std::string("range of a pass")
                                                        : "range: " + text(snapshot, judgment.label));
    case Basis::lifetime: return "lifetime: " + life;
    case Basis::size: return with_life("size of torch's cuBLAS workspace");
    case Basis::profiler: return "the profiler's category " + text(snapshot, judgment.label);
    case Basis::compile_context: return "compile context";
    case Basis::metadata: return "the job's own note (user_metadata)";
    case Basis::pool: return "memory pool: a CUDA graph, or one that the job made";
    case Basis::range: return "innermost range (record_function)";
    case Basis::nothing: break;
  }
  return "";
}

}  // namespace

MemoryCategory profilers_category(std::string_view name) {
  if (const std::size_t dot = name.rfind('.'); dot != name.npos) name.remove_prefix(dot + 1);
  for (std::size_t i = 0; i < kTimelineCategories; i++) {
    if (name == timeline_category_name(i)) return timeline_category(i);
  }
  return MemoryCategory::unknown;
}

MemoryClass described(const CudaSnapshot& snapshot, const Judgment& judgment) {
  return {name_of(snapshot, judgment), judgment.category, evidence_of(snapshot, judgment)};
}

}  // namespace stepscope::snapshot
