// What the marks of a run folder say beside its traces: which ranks took part, how far each came, what was being
// recorded when one ended.
#pragma once

#include <string>

#include "model/trace.h"

namespace stepscope::session {

// The run folder that a file lies in: …/traces/rankR…/FILE, …/memory_trace/rankR…/FILE, …/telemetry/FILE,
// …/memory/FILE; empty where it lies in none.
std::string run_folder_of(const std::string& trace_path);

// Adds issues for ranks that have marks and no trace, that the world lacks, that ended before the others, and for steps
// that were lost with a process that was killed while it recorded them. Damaged marks are an issue too.
void add_mark_issues(const std::string& run_folder, Run& run);

// Every step and phase of each rank as a derived trace, by rank; of ranks that were started anew the process that lived
// last. Damaged marks are left out: add_mark_issues tells of them.
std::vector<Trace> read_history(const std::string& run_folder);

}  // namespace stepscope::session
