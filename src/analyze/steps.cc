#include "analyze/analysis.h"

namespace stepscope::analyze {

Analysis steps_analysis() {
  return {"steps", "", [](const Run&, const AnalyzeOptions&) -> Result<Answer> { return Answer{.name = "steps"}; }};
}

}  // namespace stepscope::analyze
