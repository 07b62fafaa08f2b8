// What the recording links a slice with, and the Python code that it came from.
//
// Everything is found by looking through the tables when a slice is chosen: that takes milliseconds, and an index of
// all links would take as much memory as the slices.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace stepscope::serve {

// What the other slice is to the chosen one.
enum class LinkKind : std::uint8_t {
  launch,      // the call that launched it
  kernel,      // work that it launched, a call or the operator that made the call
  forward,     // the operator of the forward pass that it, or the nearest operator around it, is the backward pass of
  backward,    // the other way round
  collective,  // what another rank did in the same collective
  arrow_from,  // an arrow of the recording comes from there, and nothing above says the same
  arrow_to,    // or leads there
};
std::string_view to_string(LinkKind kind);

struct LinkedSlice {
  LinkKind kind = LinkKind::launch;
  std::size_t rank = 0;  // index into Run::traces
  SliceId slice = SliceId::none;
};

struct Links {
  std::vector<LinkedSlice> found;  // in the order of the kinds, the first of each by time
  std::size_t total = 0;           // more than found where there are more than asked for
};

Links links_of(const Run& run, std::size_t rank, SliceId slice, std::size_t most);

struct CodeStack {
  std::vector<std::string_view> frames;  // as recorded, "file(line): function"; innermost first
  SliceId of = SliceId::none;            // whose they are: the slice's own, its launch's, or its forward operator's
};

// The Python frames around the slice; without any those around the call that launched it, or around the operator of the
// forward pass: autograd's threads run no Python.
CodeStack stack_of(const Trace& trace, SliceId slice);

}  // namespace stepscope::serve
