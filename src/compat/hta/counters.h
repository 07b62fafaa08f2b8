// HTA's two counters over time: how many launches wait on a stream, and how fast copies and fills run. A value holds
// from its point until the next one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compat/hta/table.h"
#include "model/answer.h"

namespace stepscope::compat::hta {

struct Point {
  double ts = 0;
  double value = 0;
  std::uint32_t index = 0;  // of the event that changed it
};

// +1 at each launch call that has a partner, -1 at the start of what it launched; one line per stream, ascending.
struct QueueLine {
  std::int64_t stream = 0;
  std::vector<Point> points;
};
std::vector<QueueLine> queue_lengths(const EventTable& table);

// + the speed at the start of each copy and fill, - the speed at its end (which is 1 us later where it took no time);
// one line per kind, ascending.
struct SpeedLine {
  std::string kind;
  std::vector<Point> points;
};
std::vector<SpeedLine> copy_speeds(const EventTable& table);

}  // namespace stepscope::compat::hta
