// The sizes of blocks that were gone before the end, which no event says: an allocation begins where a free block
// began, which reached to the next block that lived or to the end of its segment, and takes all of it where torch's
// allocator would not have split it.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "snapshot/byte_sums.h"
#include "snapshot/replay.h"
#include "snapshot/rounding.h"

namespace stepscope::snapshot {
namespace {

class Blocks {
 public:
  Blocks(const CudaSnapshot& snapshot, const SnapshotDevice& device, AllocatorHistory& history)
      : device_(device), history_(history), rows_(history.allocations), rounding_(snapshot) {
    const HeldRanges& ranges = history.ranges;
    for (std::uint32_t i = device.ranges.first; i < device.ranges.first + device.ranges.count; i++) {
      changes_.push_back({ranges.begin[i], true, i});
      if (ranges.end[i] != kNever) changes_.push_back({ranges.end[i], false, i});
    }
    // What goes at a moment goes before what comes: it may be the same memory.
    std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
      return std::pair(a.moment, a.comes) < std::pair(b.moment, b.comes);
    });
  }

  void run() {
    take_ranges(0);
    const std::uint32_t last = device_.allocations.first + device_.allocations.count;
    for (std::uint32_t row = device_.allocations.first; row < last; row++) {
      if (rows_.begin[row] == 0) size(row, false);
    }
    for (std::uint32_t moment = 1; moment <= device_.events.count; moment++) step(moment);
    for (std::uint32_t row = device_.allocations.first; row < last; row++) {  // those that no event allocated
      if (rows_.block_bytes[row] == kNotRecorded) rows_.block_bytes[row] = rounding_.rounded(rows_.bytes[row]);
    }
  }

 private:
  struct Change {  // of what is held
    std::uint32_t moment;
    bool comes;
    std::uint32_t range;
  };

  void take_ranges(std::uint32_t moment) {
    for (; next_change_ < changes_.size() && changes_[next_change_].moment == moment; next_change_++) {
      const auto [at, comes, range] = changes_[next_change_];
      if (comes) {
        held_[history_.ranges.address[range]] = range;
      } else {
        held_.erase(history_.ranges.address[range]);
      }
    }
  }

  void step(std::uint32_t moment) {
    const std::uint32_t event = device_.events.first + moment - 1;
    take_ranges(moment);
    const std::uint32_t row = history_.allocation_of_event[event];
    if (row == kNoEntry) return;
    if (rows_.begin[row] == moment) size(row, true);
    if (rows_.end[row] == moment) live_.erase(rows_.address[row]);
  }

  // `alone`: all that lived before it is in live_.
  void size(std::uint32_t row, bool alone) {
    const std::uint64_t address = rows_.address[row];
    const std::uint32_t range = range_of(address);
    if (range != kNoEntry && rows_.pool[row] == kNoEntry) rows_.pool[row] = history_.ranges.pool[range];
    std::int64_t& bytes = rows_.block_bytes[row];
    if (bytes == kNotRecorded) {
      bytes = rounding_.rounded(rows_.bytes[row]);
      if (alone && range != kNoEntry) bytes = rounding_.taken(bytes, free_from(address, range, bytes));
    }
    live_[address] = row;
  }

  std::uint32_t range_of(std::uint64_t address) const {
    const auto after = held_.upper_bound(address);
    if (after == held_.begin()) return kNoEntry;
    const std::uint32_t range = std::prev(after)->second;
    return address < behind(history_.ranges.address[range], history_.ranges.bytes[range]) ? range : kNoEntry;
  }

  // To the next block, or to the end of what is held in one piece, as far as it matters to `wanted`.
  std::int64_t free_from(std::uint64_t address, std::uint32_t range, std::int64_t wanted) const {
    const HeldRanges& ranges = history_.ranges;
    const std::uint64_t enough = behind(behind(address, wanted), 2 * kMostSmall);
    std::uint64_t end = behind(ranges.address[range], ranges.bytes[range]);
    const auto next = live_.upper_bound(address);
    const std::uint64_t limit = next == live_.end() ? enough : std::min(enough, next->first);
    for (auto more = held_.find(end); ranges.expandable[range] == 1 && end < limit && more != held_.end();
         more = held_.find(end)) {
      const std::uint64_t further = behind(end, ranges.bytes[more->second]);
      if (further <= end) break;
      end = further;
    }
    return between(address, next == live_.end() ? end : std::min(end, next->first));
  }

  const SnapshotDevice& device_;
  AllocatorHistory& history_;
  Allocations& rows_;
  Rounding rounding_;
  std::vector<Change> changes_;  // by moment
  std::size_t next_change_ = 0;
  std::map<std::uint64_t, std::uint32_t> held_, live_;  // by address: rows of ranges and allocations
};

}  // namespace

void size_blocks(const CudaSnapshot& snapshot, const SnapshotDevice& device, AllocatorHistory& history) {
  Blocks(snapshot, device, history).run();
}

}  // namespace stepscope::snapshot
