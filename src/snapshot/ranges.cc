// What the allocator held from the device, as rectangles of addresses and moments. The segments at the end are known,
// so the events are walked backwards: memory that an event asked for was not there before it, what one gave back was.
#include <map>

#include "base/key_index.h"
#include "snapshot/byte_sums.h"
#include "snapshot/replay.h"

namespace stepscope::snapshot {
namespace {

constexpr std::int64_t kSmallSegment = 2 << 20;  // what torch asks for where blocks of at most 1 MiB are to lie

// Memory that is held at the moment at hand, and until when; its beginning is not known yet.
struct Held {
  std::int64_t bytes = 0;
  std::uint32_t end = kNever;
  std::uint32_t stream = kNoEntry, pool = kNoEntry;
  std::int8_t expandable = -1, small = -1;
};

class Backwards {
 public:
  Backwards(const CudaSnapshot& snapshot, SnapshotDevice& device, HeldRanges& out)
      : snapshot_(snapshot), device_(device), out_(out) {}

  void run(std::span<const std::uint32_t> segments) {
    for (const std::uint32_t at : segments) hold(snapshot_.segments[at]);
    for (std::uint32_t moment = device_.events.count; moment > 0; moment--) before(moment);
    for (const auto& [address, held] : now_) add(address, held.bytes, 0, held, StackId::none);
  }

 private:
  void hold(const SnapshotSegment& segment) {
    if (segment.address == kNoAddress || segment.total_bytes == kNotRecorded) return;
    const std::string_view type = snapshot_.strings[segment.type];
    put(segment.address, {.bytes = segment.total_bytes,
                          .stream = segment.stream,
                          .pool = segment.pool,
                          .expandable = segment.expandable,
                          .small = static_cast<std::int8_t>(type == "small"   ? 1
                                                            : type == "large" ? 0
                                                                              : -1)});
  }

  void before(std::uint32_t moment) {
    const std::uint32_t event = device_.events.first + moment - 1;
    const AllocatorEvents& events = snapshot_.events;
    const AllocatorAction action = events.action[event];
    if (action < AllocatorAction::segment_alloc || action > AllocatorAction::segment_unmap) return;
    const std::int64_t bytes = events.size_bytes[event];
    if (bytes == kNotRecorded) {
      device_.faults.no_size++;
    } else if (action == AllocatorAction::segment_alloc || action == AllocatorAction::segment_map) {
      begin(events.address[event], bytes, moment, events.stack[event]);
    } else {
      const std::uint32_t context = events.context[event];
      const bool mapped = action == AllocatorAction::segment_unmap;
      put(events.address[event], {.bytes = bytes,
                                  .end = moment,
                                  .stream = events.stream[event],
                                  .pool = context == kNoEntry ? kNoEntry : snapshot_.contexts[context].pool,
                                  .expandable = static_cast<std::int8_t>(mapped),
                                  .small = static_cast<std::int8_t>(mapped ? -1 : bytes == kSmallSegment)});
    }
  }

  // Not where something is held already: then the file says two things of one address.
  void put(std::uint64_t address, const Held& held) {
    if (held.bytes == 0) return;
    const auto next = now_.lower_bound(address);
    const bool hits_next = next != now_.end() && next->first < behind(address, held.bytes);
    const bool hits_previous =
        next != now_.begin() && behind(std::prev(next)->first, std::prev(next)->second.bytes) > address;
    if (hits_next || hits_previous) {
      device_.faults.lost_ranges++;
    } else {
      now_.emplace_hint(next, address, held);
    }
  }

  // All that lies in [address, address + bytes) came at this moment; what stands out of it on either side stays.
  void begin(std::uint64_t address, std::int64_t bytes, std::uint32_t moment, StackId stack) {
    const std::uint64_t end = behind(address, bytes);
    std::int64_t found = 0;
    auto at = now_.upper_bound(address);
    if (at != now_.begin()) at--;
    while (at != now_.end() && at->first < end) {
      const auto [start, held] = *at;
      const std::uint64_t stop = behind(start, held.bytes);
      if (stop <= address) {
        at++;
        continue;
      }
      const std::uint64_t low = std::max(start, address), high = std::min(stop, end);
      at = now_.erase(at);
      if (start < low) now_.emplace_hint(at, start, part(held, between(start, low)));
      if (high < stop) now_.emplace_hint(at, high, part(held, between(high, stop)));
      add(low, between(low, high), moment, held, stack);
      found = plus(found, between(low, high));
      if (high < stop) break;
    }
    if (found != bytes) device_.faults.lost_ranges++;
  }

  static Held part(Held of, std::int64_t bytes) {
    of.bytes = bytes;
    return of;
  }

  void add(std::uint64_t address, std::int64_t bytes, std::uint32_t begin, const Held& held, StackId stack) {
    out_.address.push_back(address);
    out_.bytes.push_back(bytes);
    out_.begin.push_back(begin);
    out_.end.push_back(held.end);
    out_.stack.push_back(stack);
    out_.stream.push_back(held.stream);
    out_.pool.push_back(held.pool);
    out_.expandable.push_back(held.expandable);
    out_.small.push_back(held.small);
  }

  const CudaSnapshot& snapshot_;
  SnapshotDevice& device_;
  HeldRanges& out_;
  std::map<std::uint64_t, Held> now_;  // by address
};

}  // namespace

void add_ranges(const CudaSnapshot& snapshot, std::span<const std::uint32_t> segments, SnapshotDevice& device,
                AllocatorHistory& history) {
  device.ranges.first = static_cast<std::uint32_t>(history.ranges.size());
  Backwards(snapshot, device, history.ranges).run(segments);
  device.ranges.count = static_cast<std::uint32_t>(history.ranges.size()) - device.ranges.first;
}

}  // namespace stepscope::snapshot
