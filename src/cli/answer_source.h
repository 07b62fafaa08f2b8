// The answers of a run for queries: each made when first asked for, and kept.
#pragma once

#include "model/trace.h"
#include "query/query.h"

namespace stepscope::cli {

// `run` must outlive what is returned.
query::Source answer_source(const Run& run);

}  // namespace stepscope::cli
