// Diagnosis: what bounds the steps of a run, what explains it, and what a fix of each explanation is worth.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/answer.h"
#include "model/trace.h"
#include "simulate/predict.h"

namespace stepscope::diagnose {

// Table `partition`: the parts that bound the steps at an instant (of a device there are others), and its columns.
namespace part {
inline constexpr std::string_view kCommunication = "communication", kToDevice = "way to the device",
                                  kWait = "wait of a thread", kDataLoader = "data loader", kLaunches = "launches",
                                  kBetweenOperators = "code between operators", kOperators = "operators on the host";
}
namespace partition {
enum Column : std::size_t { kRank, kPart, kPhase, kFinding, kTime, kShare, kExplainedBy };
}

// SQL: the stretches of the steps that a finding explains, as a condition on the rows of the table.
std::string is_explained_by(std::string_view id);

// Two findings that share less of the smaller one's time are about different things.
inline constexpr double kShared = 0.1;

// The answer `advice`: findings of all causes, priced, those worth most first, and the partition of the steps behind
// them. An error where nothing can be played.
Result<Answer> advice(const Run& run, const simulate::Predictor& predictor);

}  // namespace stepscope::diagnose
