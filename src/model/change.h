// Change: what an analysis or a user would alter in the program, as a plain value. An analysis attaches it to its
// finding; what it is worth is for src/simulate to say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/network.h"

namespace stepscope {

enum class ChangeKind : std::uint8_t {
  scale,         // what `target` selects takes `value` times as long; 0: it is gone, and nothing waits in it
  set_duration,  // every call of it takes `value` ns
  data_loader,   // waiting for the data loader takes `value` times as long
  overlap,       // nothing but the end of the step waits for communication
  bandwidth,     // the part of communication that grows with its bytes is `value` times as fast
  ranks,         // `value` data-parallel ranks instead of those recorded
  fuse,          // neighbors on a stream that `target` selects become one kernel, launched once
  no_waits,      // the host never waits for the device
  level_rank,    // the others do not wait for rank `rank`
};

struct Change {
  ChangeKind kind = ChangeKind::scale;
  // "kernel:gemm", "op:aten::sort", "host:collate", "phase:optimizer"; see simulate/selection.h. Empty: the kind says
  // it.
  std::string target = {};
  double value = 1;
  std::optional<std::int64_t> rank = {};
  Network network = {};  // of `ranks`; no dimensions: a ring of links like those recorded

  friend bool operator==(const Change&, const Change&) = default;
};

}  // namespace stepscope
