// Findings of other answers beside the partition of the steps that advice explains: which say something of one time.
#pragma once

#include "model/answer.h"

namespace stepscope::session {

// Each finding that says what its fix would change, and is none of advice, gets a piece of evidence for each finding of
// advice that explains part of the time which that change takes from. Nothing where the report has no advice.
void say_what_is_shared(Report& report);

}  // namespace stepscope::session
