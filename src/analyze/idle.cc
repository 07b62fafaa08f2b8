#include "analyze/analysis.h"

namespace stepscope::analyze {

Analysis idle_analysis() {
  return {"idle", "", [](const Run&, const AnalyzeOptions&) -> Result<Answer> { return Answer{.name = "idle"}; }};
}

}  // namespace stepscope::analyze
