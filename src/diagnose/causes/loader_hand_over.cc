// Batches that workers have ready, of so many tensors that taking them over is what the steps wait for: each comes by a
// file of its own through which the processes share its memory.
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "diagnose/loading.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::int64_t kManyTensors = 16;  // in a batch
constexpr std::int64_t kFewTensors = 4;    // that the same batch could be

// A call for the next batch, with what it takes over: each tensor is set to memory that is shared.
struct Batch {
  std::set<SliceId> tensors;
  std::vector<std::uint32_t> nodes;
};

// Of the rank whose steps they are, by the range of the call.
std::map<SliceId, Batch> taken_over(const Case& about, const Loading& load) {
  std::map<SliceId, Batch> out;
  for (const std::uint32_t node : load.nodes) {
    const Work work = about.work(node);
    if (work.trace != &about.trace) continue;
    const SliceId range = given_in(work).first;
    if (range == SliceId::none) continue;
    Batch& batch = out[range];
    batch.nodes.push_back(node);
    const bool is_set = work.operation != SliceId::none && work.trace->name(work.operation) == "aten::set_";
    if (is_set) batch.tensors.insert(work.operation);
  }
  return out;
}

}  // namespace

Cause loader_hand_over_cause() {
  return {"loader_hand_over", "Batches handed over in pieces", [](const Case& about, std::vector<Diagnosis>& out) {
            const Loading& load = loading(about);
            if (load.where != LoadsIn::workers || about.share(load.time_ns) < kWorthSaying || !keeps_up(load)) return;
            std::set<std::uint32_t> in_pieces;
            std::int64_t tensors = 0, batches = 0;
            for (const auto& [range, batch] : taken_over(about, load)) {
              if (static_cast<std::int64_t>(batch.tensors.size()) < kManyTensors) continue;
              in_pieces.insert(batch.nodes.begin(), batch.nodes.end());
              tensors += static_cast<std::int64_t>(batch.tensors.size());
              batches++;
            }
            if (batches == 0) return;
            tensors /= batches;
            const double left = static_cast<double>(kFewTensors) / static_cast<double>(tensors);
            Diagnosis found = waits_for_loader(
                about, load, "The workers have batches ready, which are handed over tensor by tensor",
                "Put samples together in the workers, in collate_fn: torch.stack() or "
                "torch.utils.data.default_collate give a few large tensors; lists of numbers and small "
                "tensors may be one array",
                left / 2, left);
            // Waits for other batches, as for the first one of workers that start, stay.
            std::erase_if(found.rewrite.nodes, [&](const auto& one) { return !in_pieces.contains(one.node); });
            found.finding.evidence.push_back({.text = "Tensors in a batch", .value = tensors, .unit = Unit::count});
            put_where_it_is_made(about, load, found.finding.where);
            out.push_back(std::move(found));
          }};
}

}  // namespace stepscope::diagnose::causes
