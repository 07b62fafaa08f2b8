// How long the products of a rank would take at the peak of its device, which over the time they had is what is called
// utilization: of the model's FLOP (MFU), or of all FLOP, those that ran again too (HFU).
//
// A product takes its FLOP over the peak of its element type, so that a step of several types is judged right.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "costs/peaks.h"
#include "costs/sums.h"

namespace stepscope::costs {

// The devices of a rank, and what they can do.
struct RankPeaks {
  std::string device;  // its name; "CPU" where no device worked; empty: not recorded
  std::size_t devices = 1;
  const DevicePeaks* peaks = nullptr;  // nullptr: of no table
};

RankPeaks rank_peaks(const Trace& trace, const std::vector<DevicePeaks>& table);

// Why there are none, and what to do, where `of` has no peaks.
std::string no_peaks(const RankPeaks& of);
inline constexpr std::string_view kGivePeaks = "; give it with --peaks (docs/flops.md)";

// Ideal times in ns; causal: half of attention that has a causal mask left out.
struct Ideal {
  double model_ns = 0, all_ns = 0;
  double causal_model_ns = 0, causal_all_ns = 0;
  std::int64_t flop = 0, without_peak = 0;  // without_peak: of these, of types whose peak is not known

  void add(const Product& product, std::string_view type, const RankPeaks& at);
  // One in a hundred FLOP may be of a type without a peak, such as a loss in float64.
  bool known() const { return flop > 0 && without_peak <= flop / 100; }
};

}  // namespace stepscope::costs
