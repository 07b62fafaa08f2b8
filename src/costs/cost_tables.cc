#include "costs/cost_tables.h"

#include <utility>

#include "model/trace.h"

namespace stepscope::costs {

Result<CostTables> cost_tables(const Run& run) {
  CostTables out;
  for (const auto& [text, file] : {std::pair<std::string_view, std::string>(run.peaks.text, run.peaks.file),
                                   std::pair<std::string_view, std::string>(built_in_peaks(), "")}) {
    Result<std::vector<DevicePeaks>> peaks = parse_peaks(text, file);
    if (!peaks) return fail(peaks.error());
    out.peaks.insert(out.peaks.end(), peaks->begin(), peaks->end());
  }
  if (const auto added = out.own.add(run.flop_rules.text, run.flop_rules.file); !added) return fail(added.error());
  if (const auto added = out.shipped.add(built_in_rules(), ""); !added) return fail(added.error());
  return out;
}

}  // namespace stepscope::costs
