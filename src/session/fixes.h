// Which advice on the first run was acted on in the second, and what it gave: predicted beside real.
#pragma once

#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::session {

// Puts table `fixes` and finding `finding_gone` first in the answer of a comparison, where something that was found in
// `a` is gone in `b`. Runs that are too large for a report, or cannot be played, are left as they are.
void add_fixes(const Run& a, const Run& b, Answer& comparison);

}  // namespace stepscope::session
