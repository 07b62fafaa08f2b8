// What to change first: the findings of a report by their worth, with nothing else.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace stepscope::report {

// Each finding once, most first: those of other answers that say the same stand there.
std::vector<const Finding*> advised(const Report& report);

std::string to_advice_text(const Report& report, const TextStyle& style);
// One JSON object; docs/report-json.md.
std::string to_advice_json(const Report& report);

}  // namespace stepscope::report
