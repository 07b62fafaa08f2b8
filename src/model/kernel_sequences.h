// Runs of device work that repeat on a stream, and runs that a compiler could fuse.
//
// A sequence is 2 to 32 pieces of work that follow each other on one stream within one step, by their names. Lengths
// are compared by doubling: the number of a run of 2k pieces is that of the pair of its halves, so that each length
// costs one pass. Input: up to 10^6 pieces of work on a stream.
#pragma once

#include <cstdint>
#include <vector>

#include "model/trace.h"

namespace stepscope {

struct Sequence {
  std::vector<std::uint32_t> example;  // rows of Trace::device of the first occurrence
  std::int64_t count = 0;              // occurrences that do not overlap
  std::int64_t device_ns = 0;          // sum of the durations
  std::int64_t gap_ns = 0;             // between its pieces, where the stream had nothing to run
};

struct StreamSequences {
  // Those with the most device time first; each piece of work counts for at most one of them.
  std::vector<Sequence> repeated;
  // Runs of two and more short kernels that only read and write memory (elementwise, norm, cast …), by content.
  std::vector<Sequence> fusible;
};

// `stream`: rows of one stream by start.
StreamSequences stream_sequences(const Trace& trace, const std::vector<std::uint32_t>& stream);

// The rows of each stream of a device, by start; streams by number.
std::vector<std::vector<std::uint32_t>> rows_by_stream(const Trace& trace, const std::vector<std::uint32_t>& rows);

}  // namespace stepscope
