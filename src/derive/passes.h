// The passes of derive, in the order in which derive.cc runs them. Each needs what the ones before it filled.
#pragma once

#include "base/result.h"
#include "derive/derive.h"
#include "model/trace.h"

namespace stepscope::derive {

using Pass = Result<void> (*)(Trace& trace, const DeriveOptions& options);

Result<void> device_waits(Trace& trace, const DeriveOptions& options);  // kinds of device rows
Result<void> call_tree(Trace& trace, const DeriveOptions& options);     // by_track, track_begin, parent, depth
Result<void> links(Trace& trace, const DeriveOptions& options);         // device.launch, device.op, links
Result<void> backward(Trace& trace, const DeriveOptions& options);      // backward
Result<void> steps(Trace& trace, const DeriveOptions& options);         // steps, step_source, device.step
Result<void> phases(Trace& trace, const DeriveOptions& options);        // slices.phase, device.phase
Result<void> modules(Trace& trace, const DeriveOptions& options);       // modules
Result<void> classes(Trace& trace, const DeriveOptions& options);       // class_rules, device.device_class, device.rule

}  // namespace stepscope::derive
