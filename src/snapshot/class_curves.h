// What is held by class over the events of a device, to be stacked: all classes at the same moments, so that at each of
// them they add up to all that lives then, blocks that are older than the recording included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/allocator_history.h"

namespace stepscope::snapshot {

struct ClassCurve {
  std::string name;                 // of the class; "other classes": the smaller ones together
  std::vector<std::int64_t> bytes;  // as the program asked for them, at each of the moments
};

struct ClassCurves {
  std::vector<std::uint32_t>
      moments;                      // ascending: of each stretch of events the one with the most, and the last of all
  std::vector<ClassCurve> classes;  // the one with the most bytes over all moments first
};

// At most `pieces` + 1 moments and `most_classes` + 1 classes. `held`: of held_by_moment.
ClassCurves class_curves(const AllocatorHistory& history, const SnapshotDevice& device,
                         const std::vector<std::int64_t>& held, std::size_t pieces, std::size_t most_classes);

}  // namespace stepscope::snapshot
