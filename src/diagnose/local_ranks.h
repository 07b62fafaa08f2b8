// How many ranks of the job share the machine of the steps that are looked at, and its cores.
#pragma once

#include <cstdint>

#include "diagnose/case.h"

namespace stepscope::diagnose {

// As the launcher said, else as many as were recorded there: what spawns its ranks itself has none to say it. At
// least 1.
std::int64_t local_ranks(const Case& about);

// Those that share the cores which the rank may use: 1 where each is bound to cores of its own.
std::int64_t ranks_on_cores(const Case& about);

}  // namespace stepscope::diagnose
