// Derive: the ordered passes that add to a freshly read Trace what all analyses need. The order is the order of
// kPasses in derive.cc; each pass is one file and says what it needs and what it fills.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/trace.h"

namespace stepscope::derive {

struct DeriveOptions {
  std::string rules_path;                    // the user's own class rules, tried before the built-in ones; empty: none
  std::vector<std::int64_t> cut_steps = {};  // numbers of marked steps that the recorder says it cut
};

// Fills every "derived" member of `trace`. Fails only when the user's rule file cannot be used.
Result<void> derive(Trace& trace, const DeriveOptions& options);

}  // namespace stepscope::derive
