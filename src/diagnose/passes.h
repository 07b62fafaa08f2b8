// Forward and backward passes: the nodes of each operator, and which operators of the backward pass belong to which of
// the forward pass.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "diagnose/case.h"

namespace stepscope::diagnose {

// An operator of the autograd engine: a piece of a backward pass.
bool is_backward(std::string_view name);

// Did autograd note this call, a row of Trace::ops, for a backward pass to come?
bool is_recorded(const Trace& trace, std::size_t row);

// Was any backward pass recorded?
bool goes_back(const Trace& trace);

class Passes {
 public:
  explicit Passes(const Case& about);

  // Nodes of an outermost operator, on the host and on devices.
  const std::vector<std::uint32_t>& nodes(const Trace& trace, SliceId outermost) const;
  // Outermost operators of the backward pass for which an outermost one of the forward pass is the reason.
  const std::vector<SliceId>& backward(const Trace& trace, SliceId outermost) const;
  // The nodes of all of these.
  std::vector<std::uint32_t> backward_nodes(const Trace& trace, SliceId outermost) const;
  // The operator of the forward pass that is the reason for one of the backward pass; itself where there is none.
  SliceId reason(const Trace& trace, SliceId outermost) const;

 private:
  struct Of {
    std::unordered_map<SliceId, std::vector<std::uint32_t>> nodes;
    std::unordered_map<SliceId, std::vector<SliceId>> backward;
    std::unordered_map<SliceId, SliceId> reason;
  };
  std::unordered_map<const Trace*, Of> traces_;
};

// Shared by the causes of a case.
const Passes& passes(const Case& about);

// Where work comes from: of the backward pass where the forward operator does, since the program only calls backward().
Code reason_code(const Case& about, const Work& work);

}  // namespace stepscope::diagnose
