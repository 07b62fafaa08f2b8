#include "analyze/analysis.h"

namespace stepscope::analyze {

Analysis operators_analysis() {
  return {"operators", "", [](const Run&, const AnalyzeOptions&) -> Result<Answer> { return Answer{.name = "operators"}; }};
}

}  // namespace stepscope::analyze
