// An execution trace with the times of its timeline: the file's own nodes, each with ts, inclusive_dur, exclusive_dur
// (microseconds) and start_ns, dur_ns (exact), and behind them a node for each kernel, copy and fill, called by the
// node whose operator launched it. Everything else stands as in the original.
#pragma once

#include <string>

#include "base/result.h"
#include "graph/link.h"
#include "model/trace.h"

namespace stepscope::write {

// Reads the text of `graph` again from its file. gzip where `out` ends in ".gz"; "-" is standard output.
Result<void> write_linked_trace(const Trace& graph, const Trace& timeline, const graph::Link& link,
                                const std::string& out);

}  // namespace stepscope::write
