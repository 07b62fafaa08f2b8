// The answers of a run for queries: each made when first asked for, and kept.
#pragma once

#include "model/trace.h"
#include "query/query.h"

namespace stepscope::session {

// `run` must outlive what is returned.
query::Source answer_source(const Run& run);

}  // namespace stepscope::session
