// Operators for which autograd made a node of its graph, whether a backward pass comes to it or not.
#pragma once

#include <set>
#include <utility>

#include "diagnose/case.h"

namespace stepscope::diagnose {

class Noted {
 public:
  explicit Noted(const Case& about);

  // `slice`: of an operator, inside of others or not.
  bool has(const Trace& trace, SliceId slice) const { return makers_.contains({&trace, slice}); }

 private:
  std::set<std::pair<const Trace*, SliceId>> makers_;
};

// Shared by the causes of a case.
const Noted& noted(const Case& about);

}  // namespace stepscope::diagnose
