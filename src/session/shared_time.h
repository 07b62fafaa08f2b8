// What advice explains of the time that findings of other answers would save.
#pragma once

#include "model/answer.h"

namespace stepscope::session {

// A finding of another answer that has a gain, of one change, gets evidence for each finding of advice that explains
// part of the time in which that change may save. Nothing where the report has no advice.
void say_what_advice_explains(Report& report);

}  // namespace stepscope::session
