#include "analyze/analysis.h"

namespace stepscope::analyze {

Analysis communication_analysis() {
  return {"communication", "", [](const Run&, const AnalyzeOptions&) -> Result<Answer> { return Answer{.name = "communication"}; }};
}

}  // namespace stepscope::analyze
