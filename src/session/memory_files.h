// Memory snapshots and memory timelines among what was opened: which of them are read, of which rank each is, and what
// follows from them. They are no traces, and stand beside them in Run::snapshots.
#pragma once

#include <string>
#include <vector>

#include "model/trace.h"
#include "session/inputs.h"

namespace stepscope::session {

bool is_memory_file(const InputFile& file);

// Of the snapshots that `stepscope run` left of a rank, the newest is read and those where memory ran out; the others
// are told. Files that the user named, and those outside of a run folder, are all read.
void keep_newest_snapshots(std::vector<InputFile>& files, std::vector<Issue>& issues);

// Fills Trace::snapshot_history, with what did not fit together as issues. Nothing where the trace is no snapshot.
void add_snapshot_history(Trace& trace);

// Moves them from run.traces to run.snapshots, and settles their ranks: by the name of the file or by the notes of the
// process that wrote it, else in order. Sorted by rank; of one rank in the order of the files.
void settle_snapshots(Run& run);

}  // namespace stepscope::session
