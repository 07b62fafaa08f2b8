// The memory of one device of a rank over time, and who allocated it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/allocations.h"
#include "model/answer.h"
#include "model/memory_category.h"

namespace stepscope::analyze::memory {

// What an allocation is used for, and what says so.
enum class Evidence : std::uint8_t {
  none,
  collective,       // allocated by a collective, or by what prepares one
  library_call,     // freed within the call of an operator that a library computes
  operator_call,    // freed within the operator that allocated it
  optimizer_kept,   // allocated while the optimizer steps, and kept
  optimizer_freed,  // freed before that step ended
  backward_kept,    // allocated in backward, and outlived it
  backward_freed,   // freed before backward ended
  forward_kept,     // allocated in forward, freed in backward or later
  forward_freed,    // freed before forward ended
  loaded,           // allocated outside of the passes while data is loaded or copied
  made_by_module,   // allocated where a module is made or moved, by the Python stack
  told,             // by the program, of what it held when the recording began
};
inline constexpr std::size_t kEvidences = 13;
std::string_view to_string(Evidence evidence);  // a sentence

struct Use {
  MemoryCategory category = MemoryCategory::unknown;
  Evidence evidence = Evidence::none;
};

// What was there before the recording, as far as the program told and the allocator's totals hold.
struct Told {
  MemoryCategory category = MemoryCategory::unknown;
  std::string_view module;  // path; empty: of none
  std::int64_t bytes = 0;
};

struct Held {
  const Trace* trace = nullptr;
  DeviceMemory memory;
  CurveStats stats;
  std::uint32_t peak = 0;  // the event of the device, by time, that reached it
  // Per allocation:
  std::vector<SliceId> around;  // the innermost slice of its thread at that time
  std::vector<SliceId> op;      // the operator or range that wanted it: not the one that only allocates
  std::vector<Use> use;
  std::vector<Told> before;

  std::int64_t rank() const { return trace->rank.rank; }
  std::int64_t bytes(std::size_t at) const { return trace->memory.bytes[memory.allocations[at].event]; }
  std::int64_t start_ns(std::size_t at) const { return trace->memory.time_ns[memory.allocations[at].event]; }
  std::array<std::int64_t, kMemoryCategories> before_by_category() const;
  Phase phase(std::size_t at) const;
  StringId op_name(std::size_t at) const;
};

// Of every device of a rank, with uses; and of all ranks of a run.
std::vector<Held> held_memory(const Trace& trace);
std::vector<Held> held_memory(const Run& run);

// The name of the step at a time; unknown: outside all steps.
Value step_name(const Trace& trace, std::int64_t time_ns);

// The Python frames around a slice, innermost first: "file(line): function < file(line): function"; "": not recorded.
std::string stack_of(const Trace& trace, SliceId slice);

}  // namespace stepscope::analyze::memory
