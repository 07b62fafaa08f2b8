// A counter of a device, which may begin again (its driver was loaded anew, it was reset): then the series goes on from
// where it stood, and what was counted between the last reading and the reset is lost, not invented.
#pragma once

#include <cstdint>

namespace stepscope::collect::telemetry {

class Rising {
 public:
  // What the device says now; the answer never falls, and begins at the first `raw`.
  std::int64_t next(std::int64_t raw) {
    if (raw < last_) lost_ += last_ - raw;
    last_ = raw;
    return raw + lost_;
  }

 private:
  std::int64_t last_ = 0, lost_ = 0;
};

}  // namespace stepscope::collect::telemetry
