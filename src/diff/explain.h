// What the change of the step consists of: the changes of the parts of its critical path.
//
// The path of a step holds each of its instants once, so means of its parts add up to the mean of the steps. The means
// are taken over the middle half of the steps by length: what one slow step did is no explanation.
#pragma once

#include <string>
#include <vector>

#include "diff/rows.h"

namespace stepscope::diff {

struct Part {
  PathClass what = PathClass::unknown;
  std::string name_a, name_b;  // empty: the whole class
  double a = 0, b = 0;         // ns of a step

  double delta() const { return b - a; }
};

struct Explanation {
  double a = 0, b = 0;        // ns of a step of the middle half
  std::vector<Part> classes;  // largest change first; their changes add up to that of the step
  std::vector<Part> parts;    // largest first, as many as it takes
  double attributed = 0;      // share of the change that the parts have; unknown parts are none
};

Explanation explain(const Side& a, const Side& b, const std::vector<Row>& rows, const StringPool& names);

}  // namespace stepscope::diff
