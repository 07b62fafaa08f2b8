// Counters over time: those of the recordings (counter events, and the bytes that allocators held), and what was
// sampled beside the job.
//
// A value holds until the next one. Where nothing is known, before the first value, after the last and where samples
// are missing, there is a gap and never a zero. Times are on the run's clock. 16 bytes a value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/trace.h"
#include "timeline/pyramid.h"

namespace stepscope::timeline {

struct CounterPoint {
  std::int64_t start_ns = 0;  // to the start of the next one
  double low = 0, high = 0;   // NaN: a gap
};

struct CounterCurve {
  static constexpr std::size_t kNoRank = static_cast<std::size_t>(-1);

  std::size_t rank = kNoRank;  // index into the timelines of the run; none: of the machine, sampled beside the job
  std::string name, group, unit;
  std::vector<std::int64_t> start_ns;  // ascending
  std::vector<double> value;           // NaN: a gap; the last one is a gap

  double low() const;
  double high() const;
  // Of [from_ns, to_ns): the values themselves where they last at least `merge_ns`, else the lowest and highest of each
  // stretch of that length. The first point may begin earlier.
  void query(std::int64_t from_ns, std::int64_t to_ns, std::int64_t merge_ns, std::vector<CounterPoint>& out) const;
};

using Pyramids = std::vector<std::unique_ptr<Pyramid>>;  // of the timelines of a run

// At most `most` of them; `left_out` counts the others.
std::vector<CounterCurve> counter_curves(const Run& run, const Pyramids& pyramids, std::size_t most,
                                         std::size_t& left_out);

}  // namespace stepscope::timeline
