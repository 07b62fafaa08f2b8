#include "analyze/analysis.h"

namespace stepscope::analyze {

Analysis utilization_analysis() {
  return {"utilization", "", [](const Run&, const AnalyzeOptions&) -> Result<Answer> { return Answer{.name = "utilization"}; }};
}

}  // namespace stepscope::analyze
