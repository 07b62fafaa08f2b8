// The parts of the answer snapshot; each adds its tables, scalars and findings.
#pragma once

#include <cstddef>
#include <vector>

#include "analyze/analysis.h"
#include "snapshot/holdings.h"
#include "snapshot/views.h"

namespace stepscope::analyze::device_memory {

// What all parts look at. Stacks are collected while tables are made, and told at the end.
struct Parts {
  const Run& run;
  const std::vector<snapshot::View>& views;
  std::size_t most_rows;  // of a table of stacks
  Answer& answer;
  snapshot::ToldStacks told = {};
};

// The peak of each device: the table devices, what lives at the peak, the curves, the scalars.
void add_devices(Parts& parts);
// Where memory ran out, why, and what lived then.
void add_ooms(Parts& parts);
// Free memory inside segments at the peak, where memory ran out, and at the end; what stands in its way.
void add_fragmentation(Parts& parts);
// What grows from step to step.
void add_growth(Parts& parts);
// Ranks side by side, and the one that stands out.
void add_ranks(Parts& parts);
// Segments at the end, and the settings of the allocator.
void add_segments(Parts& parts);
// Memory timelines of the profiler: categories over time.
void add_timelines(Parts& parts);

}  // namespace stepscope::analyze::device_memory
