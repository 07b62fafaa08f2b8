// Memory snapshots that tests put together in memory, event by event. Not part of the program.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/cuda_snapshot.h"

namespace stepscope::snapshot_fixture {

inline constexpr std::int64_t kMiB = 1 << 20;

struct Frame {
  std::string_view file, function;
  std::int64_t line = 1;
};

class Builder {
 public:
  Builder() {
    snapshot.stack_begin.push_back(0);
    snapshot.has_traces = true;
    snapshot.streams = {0};
    snapshot.pools.push_back({});
  }

  StackId stack(std::initializer_list<Frame> frames) {
    for (const Frame& frame : frames) {
      snapshot.frames.push_back({.file = snapshot.strings.intern(frame.file),
                                 .function = snapshot.strings.intern(frame.function),
                                 .line = frame.line});
      snapshot.stack_frames.push_back(static_cast<FrameId>(snapshot.frames.size() - 1));
    }
    snapshot.stack_begin.push_back(snapshot.stack_frames.size());
    return static_cast<StackId>(snapshot.stacks() - 1);
  }

  // Number of the event. Each is two microseconds after the one before.
  std::uint32_t event(AllocatorAction action, std::uint64_t address, std::int64_t bytes, StackId stack = StackId::none,
                      std::uint32_t context = kNoEntry) {
    AllocatorEvents& events = snapshot.events;
    events.action.push_back(action);
    events.address.push_back(address);
    events.size_bytes.push_back(bytes);
    events.time_us.push_back(now_us() + 1);
    events.stream.push_back(0);
    events.stack.push_back(stack);
    events.context.push_back(context);
    return static_cast<std::uint32_t>(events.size() - 1);
  }
  std::uint32_t alloc(std::uint64_t address, std::int64_t bytes, StackId stack = StackId::none) {
    return event(AllocatorAction::alloc, address, bytes, stack);
  }
  // Number of the event that completes it.
  std::uint32_t free(std::uint64_t address, std::int64_t bytes, StackId stack = StackId::none) {
    event(AllocatorAction::free_requested, address, bytes, stack);
    return event(AllocatorAction::free_completed, address, bytes, stack);
  }
  // Between the last event and the next one.
  void mark(std::string_view name, std::string_view stage) {
    snapshot.annotations.push_back({snapshot.strings.intern(name), snapshot.strings.intern(stage), 0, now_us()});
  }

  std::int64_t now_us() const { return 1'000'000 + 2 * static_cast<std::int64_t>(snapshot.events.time_us.size()); }

  // At the end, with its active blocks (address, bytes).
  void segment(std::uint64_t address, std::int64_t bytes, std::vector<std::pair<std::uint64_t, std::int64_t>> blocks,
               std::string_view type = "large", bool expandable = false) {
    SnapshotSegment one;
    one.address = address;
    one.total_bytes = bytes;
    one.device = 0;
    one.stream = 0;
    one.pool = 0;
    one.expandable = expandable ? 1 : 0;
    one.type = snapshot.strings.intern(type);
    one.blocks = {static_cast<std::uint32_t>(snapshot.blocks.size()), static_cast<std::uint32_t>(blocks.size())};
    for (const auto& [at, size] : blocks) {
      SnapshotBlock block;
      block.address = at;
      block.size_bytes = block.requested_bytes = size;
      block.state = BlockState::active;
      snapshot.blocks.push_back(block);
    }
    snapshot.segments.push_back(one);
  }

  // With all events as those of device 0.
  const CudaSnapshot& done() {
    snapshot.devices = {{0, static_cast<std::uint32_t>(snapshot.events.size())}};
    return snapshot;
  }

  CudaSnapshot snapshot;
};

}  // namespace stepscope::snapshot_fixture
