// Contract of the analyses: one file per question, one line in analyses.list.
//
// An analysis is a pure function of the run. It returns plain values with units and meanings; what it cannot know it
// leaves unknown and says why in a note.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/result.h"
#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::analyze {

struct AnalyzeOptions {
  std::size_t max_rows = 0;  // longest table wanted; 0: all rows
};

struct Analysis {
  std::string_view name;     // as on the command line
  std::string_view summary;  // the question it answers
  // What stands in the answer but its name and summary.
  Result<Answer> (*find)(const Run& run, const AnalyzeOptions& options);

  Result<Answer> run(const Run& run, const AnalyzeOptions& options) const {
    return titled(find(run, options), name, summary);
  }
};

std::span<const Analysis> analyses();  // from analyses.list, in that order

}  // namespace stepscope::analyze
