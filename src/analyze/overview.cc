#include "analyze/analysis.h"

namespace stepscope::analyze {

Analysis overview_analysis() {
  return {"overview", "", [](const Run&, const AnalyzeOptions&) -> Result<Answer> { return Answer{.name = "overview"}; }};
}

}  // namespace stepscope::analyze
