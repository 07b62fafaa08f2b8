// Allocations of each device, from the allocator's events: every allocation paired with its free by address, and the
// curves of allocated and reserved bytes.
//
// A recording mostly begins in the middle of the program: what was allocated before it shows only in the totals and in
// frees of unknown addresses, which are counted. Input: up to some 10^6 events of one trace, in any order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/curves.h"
#include "model/trace.h"

namespace stepscope {

struct Allocation {
  static constexpr std::uint32_t never = 0xffffffff;

  std::uint32_t event = 0;           // row of Trace::memory
  std::uint32_t order = 0;           // place among the device's events by time
  std::uint32_t freed = never;       // place of the free; never: not in the recording
  std::uint32_t free_event = never;  // its row of Trace::memory
  std::int64_t freed_ns = kAbsent;
};

struct DeviceMemory {
  std::int16_t type = -1, index = -1;   // as torch's c10::DeviceType; index -1: the only one
  std::vector<Allocation> allocations;  // by time
  Curve allocated;                      // one point for each event
  Curve reserved;                       // empty where it is not recorded
  std::int64_t before_bytes = 0;        // of these, there before the first event, as far as that is known
  // `allocated` is what the allocator itself counted; else the sum since the recording began, and what the program told
  bool absolute = false;
  std::uint64_t events = 0, frees = 0;
  std::uint64_t unknown_frees = 0;  // of addresses that were not allocated in the recording
  std::int64_t unknown_freed_bytes = 0;
  std::uint64_t lost_frees = 0;  // an address was allocated again although its free was not recorded

  std::string name() const;  // "cpu", "cuda:0" …
  bool alive(const Allocation& one, std::uint32_t at) const { return one.order <= at && one.freed > at; }
};

std::vector<DeviceMemory> device_memories(const Trace& trace);

}  // namespace stepscope
