// The collectives of a run with their nodes, and where they stand in the steps.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnose/cause.h"
#include "model/collective_work.h"

namespace stepscope::diagnose {

struct Collective {
  std::uint32_t match = 0;  // row of Run::matches
  CollectiveKind kind = CollectiveKind::other;
  std::int64_t bytes = Match::kUnknownBytes;
  StepId step = StepId::none;        // of the rank that takes longest; none: it is no member, or outside of the steps
  bool after_backward = false;       // it begins when the backward pass of its step has ended: nothing hides it
  SliceId call = SliceId::none;      // what asked for it on the thread of the steps of that rank; none: not recorded
  std::vector<std::uint32_t> nodes;  // of all ranks: transfers
};

struct Communicating {
  std::vector<Collective> collectives;  // in order of time
  std::int64_t steps = 0;               // whole steps with a collective
  std::int64_t backward_passes = 0;     // in all of these
};

// Shared by the causes of a case.
const Communicating& communicating(const Case& about);

// What threads of the steps do in a loop that asks for one collective after the other, outside of backward passes: the
// calls, and the code and operators between them. Eight collectives or more in a row, of all ranks.
std::vector<std::uint32_t> loops_of_calls(const Case& about);

// Work of the host: calls that ask for an all-reduce, and what DistributedDataParallel does with gradients beside them.
bool asks_to_reduce(const Work& work);
bool is_of_reducer(const Work& work);

// Says what is communicated, and where the program asks for it.
void put_call(const Case& about, const Collective& one, Place& place);

}  // namespace stepscope::diagnose
