// Moments that are made one after the other by sums and multiples alone, as smoothing, discounted returns and filters
// do: such a chain has a closed form, or is a scan, over all moments at once.
#include <cstddef>
#include <string_view>

#include "diagnose/loops.h"
#include "diagnose/operators.h"

namespace stepscope::diagnose::causes {
namespace {

constexpr std::size_t kFewestTurns = 16;

// Of the state and of what comes in: no gate, product of matrices or choice stands between two moments.
bool is_scan(const Loop& loop) {
  bool computes = false;
  for (std::size_t i = 0; i < loop.period; i++) {
    const std::string_view name = loop.trace->name(loop.operations[i].slice);
    computes |= is_linear(name);
    if (!is_linear(name) && !is_put_elsewhere(name) && !is_view(name) && !is_without_values(name)) return false;
  }
  return computes && loop.turns() >= kFewestTurns && !loop.varied;
}

}  // namespace

Cause scan_by_hand_cause() {
  return {"scan_by_hand", "Sums and multiples, moment by moment", [](const Case& about, std::vector<Diagnosis>& out) {
            find_loops(about, is_scan,
                       {.cause = "host",
                        .sentence = "A loop in Python makes each moment from the one before it by sums and multiples",
                        .next = "Make all moments at once: torch.cumsum over what is divided by the powers of the "
                                "factor, a product with the matrix of these powers, or a convolution with them (by "
                                "torch.fft where there are many); else a scan that takes log2 of the turns, or "
                                "torch.compile around the loop",
                        .how = {.least = 0.2, .most = 1, .fused = true},
                        .carried = true,
                        .doubt = "that the factors do not depend on the state is inferred"},
                       out);
          }};
}

}  // namespace stepscope::diagnose::causes
