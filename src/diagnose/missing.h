// What a recording lacks for a surer diagnosis.
#pragma once

#include <string>
#include <vector>

#include "diagnose/case.h"

namespace stepscope::diagnose {

// Sentences: what is not recorded, which causes cannot be seen for that, and the command that records it.
std::vector<std::string> missing(const Case& about);

}  // namespace stepscope::diagnose
