// Small look-ups in the call tree that several passes need. A walk towards the root ends after kDeepestWalk levels
// (Python itself stops at 1000 frames), so that a hostile file cannot make them quadratic.
#pragma once

#include <string_view>

#include "model/trace.h"

namespace stepscope {

inline constexpr int kDeepestWalk = 4096;

// The innermost slice of `track` that is open at `time_ns` (its end included); none: nothing is.
SliceId slice_at(const Trace& trace, TrackId track, std::int64_t time_ns);

// The innermost op or annotation around `id`, itself included; none: there is none.
SliceId op_around(const Trace& trace, SliceId id);

// Name of an op as a place in the program: none for no op, and for the mark of a step, which differs in every step.
StringId op_name(const Trace& trace, SliceId op);

// Row of `id` in a table that is sorted by slice; the table's size when it has none.
std::size_t row_of(const Column<SliceId>& table, SliceId id);

// The name of the machine that it was recorded on, as JSON; empty: not recorded, or a name that every machine may have.
std::string_view machine_of(const Trace& trace);

}  // namespace stepscope
