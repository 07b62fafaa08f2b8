#include "analyze/analysis.h"

namespace stepscope::analyze {

Analysis quality_analysis() {
  return {"quality", "", [](const Run&, const AnalyzeOptions&) -> Result<Answer> { return Answer{.name = "quality"}; }};
}

}  // namespace stepscope::analyze
