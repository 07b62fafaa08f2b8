// Batches that workers have ready, of so many tensors that taking them over is what the steps wait for: each comes by a
// file of its own through which the processes share its memory.
#include <algorithm>
#include <cstdint>

#include "diagnose/loading.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::int64_t kManyTensors = 16;  // in a batch
constexpr std::int64_t kFewTensors = 4;    // that the same batch could be

// Tensors that the process of the steps takes over, all steps together: each is set to memory that is shared.
std::int64_t taken_over(const Case& about, const Loading& load) {
  return std::count_if(load.nodes.begin(), load.nodes.end(), [&](std::uint32_t node) {
    const Work work = about.work(node);
    return work.operation != SliceId::none && work.trace->name(work.operation) == "aten::set_";
  });
}

}  // namespace

Cause loader_hand_over_cause() {
  return {"loader_hand_over", "Batches handed over in pieces", [](const Case& about, std::vector<Diagnosis>& out) {
            const Loading& load = loading(about);
            if (load.where != LoadsIn::workers || about.share(load.time_ns) < kWorthSaying || !keeps_up(load)) return;
            const std::int64_t tensors = taken_over(about, load) / std::max<std::int64_t>(1, about.steps);
            if (tensors < kManyTensors) return;
            const double left = static_cast<double>(kFewTensors) / static_cast<double>(tensors);
            Diagnosis found = waits_for_loader(
                about, load, "The workers have batches ready, which are handed over tensor by tensor",
                "Put samples together in the workers, in collate_fn: torch.stack() or "
                "torch.utils.data.default_collate give a few large tensors; lists of numbers and small "
                "tensors may be one array",
                left / 2, left);
            found.finding.evidence.push_back({.text = "Tensors in a batch", .value = tensors, .unit = Unit::count});
            put_where_it_is_made(about, load, found.finding.where);
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
