// Which collectors this machine has: each is opened as the sampler opens it, none is sampled.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "collect/telemetry/collector.h"

namespace stepscope::collect::telemetry {

struct Probe {
  Collector collector;
  std::optional<Error> absent;  // why it is not here
};

// In the order of `which`. A driver that does not answer within two seconds is left behind.
std::vector<Probe> probe(std::span<const Collector> which, const Roots& roots = {});

}  // namespace stepscope::collect::telemetry
