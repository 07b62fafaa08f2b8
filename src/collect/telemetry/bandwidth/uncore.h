// Bytes that the memory controllers of each socket read and write, and those that go to other sockets, by the counters
// of these devices (uncore PMUs).
#pragma once

#include <memory>

#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry::bandwidth {

// The error says what stands in the way; its message is empty where there are no such devices at all.
Result<std::unique_ptr<Source>> open_uncore(const Roots& roots);

}  // namespace stepscope::collect::telemetry::bandwidth
