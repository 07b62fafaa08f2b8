#include "costs/ideal.h"

#include <algorithm>

#include "model/windows.h"

namespace stepscope::costs {

RankPeaks rank_peaks(const Trace& trace, const std::vector<DevicePeaks>& table) {
  RankPeaks out;
  const RankTime time = rank_time(trace);
  if (time.devices.empty()) {
    out.device = "CPU";
  } else {
    out.devices = time.devices.size();
    const std::int32_t first = time.devices.front().device;  // those of one rank are of one kind
    const auto found = std::find_if(trace.devices.begin(), trace.devices.end(),
                                    [&](const DeviceInfo& info) { return info.id == first; });
    if (found != trace.devices.end()) out.device = found->name;
  }
  out.peaks = peaks_of(table, out.device);
  return out;
}

std::string no_peaks(const RankPeaks& of) {
  if (of.device.empty())
    return "The recording does not name the device; say what it can do in a line named any, with --peaks "
           "(docs/flops.md)";
  return "The peaks of " + of.device + " are not known; give them with --peaks (docs/flops.md)";
}

void Ideal::add(const Product& product, std::string_view type, const RankPeaks& at) {
  flop = add_up(flop, product.flop);
  const auto peak = at.peaks == nullptr ? std::nullopt : at.peaks->flop_per_s(type);
  if (!peak) {
    without_peak = add_up(without_peak, product.flop);
    return;
  }
  const double per_ns = *peak * static_cast<double>(at.devices) / 1e9;
  const double whole = static_cast<double>(product.flop) / per_ns;
  const double causal = static_cast<double>(product.flop - product.masked) / per_ns;
  all_ns += whole;
  causal_all_ns += causal;
  if (product.part == Part::recompute) return;
  model_ns += whole;
  causal_model_ns += causal;
}

}  // namespace stepscope::costs
