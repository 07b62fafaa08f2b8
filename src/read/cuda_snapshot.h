// Reader of the CUDA memory snapshots of torch (torch.cuda.memory._dump_snapshot), of every version, plain or gzip, and
// of the pages that torch's viewer writes (_memory_viz.py trace_plot, segment_plot): they hold the pickle as base64.
//
// As a Reader it gives one Trace that has the snapshot and nothing else. Nothing that the file holds is ever run
// (formats/pickle.h).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/cuda_snapshot.h"

namespace stepscope::read {

// Does the uncompressed start of a file (up to 64 KiB) look like a snapshot? Content only, never the name.
bool looks_like_cuda_snapshot(std::string_view head);

// What is odd or damaged within a snapshot is left empty and told in its issues. Errors: what the pickle machine
// refuses, with the byte (formats/pickle.h), and unrecognized: plain data, but no snapshot. `max_text_bytes` limits
// what a packed file may grow to; 0: 100 times its size, 64 MiB at least.
Result<CudaSnapshot> read_cuda_snapshot(const std::string& path, std::uint64_t max_text_bytes = 0);

}  // namespace stepscope::read
