// What memory snapshots hold at a moment of the user's choice, between two, or against other snapshots.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::session {

enum class MomentKind : std::uint8_t { peak, event, time, oom, end };

struct MemoryView {
  MomentKind kind = MomentKind::peak;
  std::int64_t number = 0;  // of the event; or which time memory ran out, from 1 on
  double seconds = 0;       // since the first event of the device, or Unix time
  std::string by;           // what the holdings are grouped by, beside class and stack; empty: nothing else
  std::optional<std::int64_t> rank, device;
  std::string from, to;  // of a growth: numbers of events or names of steps; empty: where the recording begins and ends
  std::size_t limit = 0;  // rows of each table; 0: all
};

// What MemoryView::by can be.
std::vector<std::string_view> memory_groups();

// Answer moment: what lives then, by class and by stack, and the free memory around it. Errors are of usage: no such
// event, no device of that number, no snapshot at all.
Result<Answer> memory_at(const Run& run, const MemoryView& view);
// Answer growth: what lives more at view.to than at view.from.
Result<Answer> memory_between(const Run& run, const MemoryView& view);
// Answer memory_diff: the moment of `view` in one run against the same in the other; devices are paired by rank and
// number, in each run the last snapshot of a rank.
Result<Answer> memory_against(const Run& a, const Run& b, const MemoryView& view);

}  // namespace stepscope::session
