// What `link` and `chakra_trace_link` do. Shared by the two.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/open_paths.h"

namespace stepscope::cli {

struct LinkFiles {
  OpenPaths input;     // an execution trace and a timeline
  std::string output;  // empty: the counts alone
  bool json = false;   // of the counts
};

// Says what was matched and writes the linked trace.
Result<void> link_files(const LinkFiles& files);

}  // namespace stepscope::cli
