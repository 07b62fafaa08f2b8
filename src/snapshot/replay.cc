#include "snapshot/replay.h"

#include <algorithm>
#include <vector>

#include "base/key_index.h"
#include "snapshot/byte_sums.h"

namespace stepscope::snapshot {
namespace {

constexpr std::uint32_t kNobody = kNoEntry;

bool is_active(BlockState state) { return state == BlockState::active || state == BlockState::pending_free; }

class Replay {
 public:
  Replay(const CudaSnapshot& snapshot, SnapshotDevice& device, AllocatorHistory& history)
      : events_(snapshot.events), snapshot_(snapshot), device_(device), history_(history), rows_(history.allocations) {
    const SnapshotRows all = device.events;
    for (std::uint32_t i = all.first; i < all.first + all.count && !completes_; i++) {
      completes_ = events_.action[i] == AllocatorAction::free_completed;
    }
  }

  void run(std::span<const std::uint32_t> segments) {
    for (std::uint32_t moment = 1; moment <= device_.events.count; moment++) {
      const std::uint32_t event = device_.events.first + moment - 1;
      switch (events_.action[event]) {
        case AllocatorAction::alloc: allocate(event, moment); break;
        case AllocatorAction::free_requested: free(event, moment, !completes_); break;
        case AllocatorAction::free_completed: free(event, moment, true); break;
        case AllocatorAction::oom: device_.ooms.push_back(moment - 1); break;
        default: break;
      }
    }
    end_with_blocks(segments);
  }

 private:
  // What is known of an address; index by its number in addresses_.
  struct Place {
    std::uint32_t alive = kNobody;  // the allocation that lies there
    std::uint32_t last = kNobody;   // the newest that ever did
    bool at_end = false;            // a block of the snapshot lies there
  };

  Place& place(std::uint64_t address) {
    const std::uint32_t at = addresses_[address];
    if (at == places_.size()) places_.emplace_back();
    return places_[at];
  }

  std::int64_t size_of(std::uint32_t event) {
    const std::int64_t bytes = events_.size_bytes[event];
    if (bytes != kNotRecorded) return bytes;
    device_.faults.no_size++;
    return 0;
  }

  std::uint32_t add(std::uint64_t address, std::int64_t bytes, std::uint32_t begin) {
    rows_.address.push_back(address);
    rows_.bytes.push_back(bytes);
    rows_.block_bytes.push_back(kNotRecorded);
    rows_.begin.push_back(begin);
    rows_.freed.push_back(kNever);
    rows_.end.push_back(kNever);
    rows_.stack.push_back(StackId::none);
    rows_.stream.push_back(kNoEntry);
    rows_.context.push_back(kNoEntry);
    rows_.pool.push_back(kNoEntry);
    rows_.of_class.push_back(0);
    return static_cast<std::uint32_t>(rows_.size() - 1);
  }

  void allocate(std::uint32_t event, std::uint32_t moment) {
    Place& here = place(events_.address[event]);
    if (here.alive != kNobody) end(here, moment, rows_.freed[here.alive] == kNever);
    const std::uint32_t row = add(events_.address[event], size_of(event), moment);
    rows_.stack[row] = events_.stack[event];
    rows_.stream[row] = events_.stream[event];
    rows_.context[row] = events_.context[event];
    if (rows_.context[row] != kNoEntry) rows_.pool[row] = snapshot_.contexts[rows_.context[row]].pool;
    here.alive = here.last = row;
    history_.allocation_of_event[event] = row;
  }

  void end(Place& here, std::uint32_t moment, bool lost) {
    if (lost) device_.faults.lost_frees++;
    rows_.end[here.alive] = moment;
    if (rows_.freed[here.alive] == kNever) rows_.freed[here.alive] = moment;
    here.alive = kNobody;
  }

  void free(std::uint32_t event, std::uint32_t moment, bool completed) {
    Place& here = place(events_.address[event]);
    if (here.alive == kNobody && here.last != kNobody) {
      device_.faults.lost_allocs++;
      return;
    }
    if (here.alive == kNobody) {  // older than the trace: its stack is not known, that of the free says nothing of it
      here.alive = here.last = add(events_.address[event], size_of(event), 0);
      rows_.stream[here.alive] = events_.stream[event];
      device_.faults.unknown_frees++;
      device_.faults.unknown_freed_bytes = plus(device_.faults.unknown_freed_bytes, rows_.bytes[here.alive]);
    }
    history_.allocation_of_event[event] = here.alive;
    if (rows_.freed[here.alive] == kNever) rows_.freed[here.alive] = moment;
    if (completed) end(here, moment, false);
  }

  // Segments of a file that was made to hang may share one list of blocks; each list is walked once.
  void end_with_blocks(std::span<const std::uint32_t> segments) {
    bool any_block = false;
    KeyIndex lists;
    for (const std::uint32_t at : segments) {
      const SnapshotSegment& segment = snapshot_.segments[at];
      const std::size_t known = lists.size();
      if (lists[std::uint64_t{segment.blocks.first} << 32 | segment.blocks.count] < known) continue;
      any_block = any_block || segment.blocks.count > 0;
      for (std::uint32_t i = 0; i < segment.blocks.count; i++) {
        const SnapshotBlock& block = snapshot_.blocks[segment.blocks.first + i];
        if (is_active(block.state) && block.address != kNoAddress) take_block(segment, block);
      }
    }
    if (!any_block) return;
    for (const Place& here : places_) {
      if (here.alive != kNobody && !here.at_end) device_.faults.not_at_end++;
    }
  }

  void take_block(const SnapshotSegment& segment, const SnapshotBlock& block) {
    Place& here = place(block.address);
    if (here.at_end) return;  // two blocks at one address
    here.at_end = true;
    if (here.alive == kNobody) {
      const std::int64_t bytes = block.requested_bytes == kNotRecorded ? block.size_bytes : block.requested_bytes;
      const std::uint32_t row = add(block.address, bytes == kNotRecorded ? 0 : bytes, 0);
      if (here.last != kNobody) {
        device_.faults.lost_allocs++;
        rows_.begin[row] = rows_.end[here.last];
      }
      rows_.stack[row] = block.stack;
      rows_.stream[row] = segment.stream;
      here.alive = here.last = row;
    }
    rows_.pool[here.alive] = segment.pool;
    rows_.block_bytes[here.alive] = block.size_bytes;
    if (rows_.stack[here.alive] == StackId::none) rows_.stack[here.alive] = block.stack;
  }

  const AllocatorEvents& events_;
  const CudaSnapshot& snapshot_;
  SnapshotDevice& device_;
  AllocatorHistory& history_;
  Allocations& rows_;
  KeyIndex addresses_;
  std::vector<Place> places_;
  bool completes_ = false;  // the trace has frees that completed; else a free that was requested is one
};

}  // namespace

void add_allocations(const CudaSnapshot& snapshot, std::span<const std::uint32_t> segments, SnapshotDevice& device,
                     AllocatorHistory& history) {
  device.allocations.first = static_cast<std::uint32_t>(history.allocations.size());
  Replay(snapshot, device, history).run(segments);
  device.allocations.count = static_cast<std::uint32_t>(history.allocations.size()) - device.allocations.first;
}

}  // namespace stepscope::snapshot
