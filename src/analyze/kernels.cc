#include "analyze/analysis.h"

namespace stepscope::analyze {

Analysis kernels_analysis() {
  return {"kernels", "", [](const Run&, const AnalyzeOptions&) -> Result<Answer> { return Answer{.name = "kernels"}; }};
}

}  // namespace stepscope::analyze
