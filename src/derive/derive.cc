#include "derive/derive.h"

#include <array>

#include "derive/passes.h"

namespace stepscope::derive {
namespace {

constexpr std::array<Pass, 8> kPasses{device_waits, call_tree, links, backward, steps, phases, modules, classes};

}  // namespace

Result<void> derive(Trace& trace, const DeriveOptions& options) {
  for (const Pass pass : kPasses)
    if (Result<void> done = pass(trace, options); !done) return done;
  return {};
}

}  // namespace stepscope::derive
