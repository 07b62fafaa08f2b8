// Times of packets on the trace's clock. Each packet may name a clock of its own; ClockSnapshots say how they relate.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "read/perfetto/sequence.h"

namespace stepscope::read::perfetto {

class Clocks {
 public:
  // False: the message is broken.
  bool take_snapshot(std::string_view message, std::uint64_t sequence);
  // The time in ns; nullopt: nothing says how the clock relates to the trace's. `clock` 0 is the trace's own.
  std::optional<std::uint64_t> time_ns(std::uint64_t clock, std::uint64_t sequence, std::uint64_t time);

 private:
  struct Clock {
    std::uint64_t id = 0, time = 0, multiplier = 1;
    bool incremental = false;
  };
  struct Relation {
    std::uint64_t clock_ns = 0, trace_ns = 0;  // the same moment on both
    std::uint64_t multiplier = 1;
    bool incremental = false;  // times are told as what passed since the last one
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;
  static Key key(std::uint64_t clock, std::uint64_t sequence) {
    const bool own = clock >= wire::snapshot::first_of_sequence && clock <= wire::snapshot::last_of_sequence;
    return {clock, own ? sequence : 0};
  }

  std::uint64_t trace_clock_ = wire::snapshot::boottime;
  std::map<Key, Relation> relations_;
};

}  // namespace stepscope::read::perfetto
