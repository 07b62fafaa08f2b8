// How many ranks of the job share the machine of the steps that are looked at.
#pragma once

#include <cstdint>

#include "diagnose/case.h"

namespace stepscope::diagnose {

// As its launcher said, or as many as were recorded there, whichever is more: what spawns its ranks itself has no
// launcher to say it. At least 1.
std::int64_t local_ranks(const Case& about);

}  // namespace stepscope::diagnose
