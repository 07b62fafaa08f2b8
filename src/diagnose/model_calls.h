// The calls of whole models, one after the other, as a service makes them; a thread of several has its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/gathered.h"
#include "diagnose/inputs.h"

namespace stepscope::diagnose {

struct ModelCall {
  const Trace* trace = nullptr;
  SliceId slice = SliceId::none;  // range of the outermost module
  TrackId track = TrackId::none;  // of the thread that calls it
  std::string_view module;        // its path
  std::int64_t start_ns = 0, end_ns = 0;
  Sizes sizes;                       // of the first tensor that it is given
  bool words = false;                // that is looked up in a table
  std::vector<std::uint32_t> nodes;  // all work of its thread in it, and what that launched
  bool trains = false;               // a backward pass follows from it
  bool recorded = false;             // autograd notes what a backward pass would need
};

// Shared by the causes of a case; thread after thread, each by time.
const std::vector<ModelCall>& model_calls(const Case& about);

// Of one model by one thread.
inline bool are_alike(const ModelCall& a, const ModelCall& b) {
  return a.trace == b.trace && a.track == b.track && a.module == b.module;
}

// Says which model it is, and where the program calls it; false: the hooks did not note that.
bool put_model(const Case& about, const Trace& trace, std::string_view module, Place& place);

}  // namespace stepscope::diagnose
