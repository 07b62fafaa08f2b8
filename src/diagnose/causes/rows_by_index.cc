// Rows of a tensor that are looked up by indexing it, tensor[indices]: what is made for any indices takes longer for
// whole rows than what is made for these, forth and back. On the host; on devices it has not been measured.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/gathered.h"
#include "diagnose/look_ups.h"
#include "diagnose/operators.h"
#include "diagnose/passes.h"

namespace stepscope::diagnose::causes {
namespace {

// What index_select leaves of the time for the same rows, of 32 to 512 numbers: forth least of narrow ones, back least
// of wide ones. Back, rows of fewer numbers gain nothing.
constexpr double kLeastForth = 0.3, kMostForth = 0.8, kLeastBack = 0.55, kMostBack = 0.75;
constexpr std::int64_t kLeastWidth = 32;

}  // namespace

Cause rows_by_index_cause() {
  return {
      "rows_by_index", "Rows looked up by indexing", [](const Case& about, std::vector<Diagnosis>& out) {
        if (about.has_device()) return;
        const std::vector<Operator>& all = forward_operators(about);
        const Passes& pass = passes(about);
        Gathered picked(about);
        std::int64_t most = 0;
        for (const LookUp& look_up : look_ups(about)) {
          if (look_up.back.empty() || look_up.by_mask || look_up.width() < kLeastWidth) continue;
          const Operator& one = all[look_up.at];
          picked.add(pass.nodes(*one.trace, one.slice), one.name, kLeastForth, kMostForth);
          for (const SliceId back : look_up.back) {
            picked.add(pass.nodes(*one.trace, back), one.name, kLeastBack, kMostBack);
          }
          most = std::max(most, look_up.rows);
        }
        if (!picked.worth_saying()) return;
        Diagnosis found = picked.diagnosis(
            {.cause = "model",
             .sentence = "Rows of a tensor are looked up by indexing it, which takes longer than index_select, most of "
                         "all in the backward pass",
             .next = "Look them up with tensor.index_select(0, indices); where the tensor is a weight, with "
                     "torch.nn.functional.embedding(indices, weight)"});
        found.finding.evidence.push_back({.text = "Rows at once", .value = most, .unit = Unit::count});
        out.push_back(std::move(found));
      }};
}

}  // namespace stepscope::diagnose::causes
