// What `stepscope monitor` says at the end: a line for each series, those that changed first.
#pragma once

#include <string>

#include "report/report.h"
#include "run/samples.h"

namespace stepscope::cli {

// `folder` is named in the command that shows the series that were 0 all along: they have no line.
std::string sampled_summary(const run::Samples& samples, const std::string& folder, const report::TextStyle& style);

}  // namespace stepscope::cli
