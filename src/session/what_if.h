// What changes to the program of a run would be worth, and how well its recording explains itself: the answer of
// `stepscope what-if`.
#pragma once

#include <functional>
#include <span>

#include "base/result.h"
#include "model/answer.h"
#include "model/change.h"
#include "model/trace.h"

namespace stepscope::session {

// A report of one answer, what_if. Without changes: how well playing the recording again explains it.
Result<Report> what_if(const Run& run, std::span<const Change> changes);

// Moves everything in `run` to when it would have been. It can no longer be analyzed: write it to a file.
Result<void> become_predicted(Run& run, std::span<const Change> changes);

}  // namespace stepscope::session
