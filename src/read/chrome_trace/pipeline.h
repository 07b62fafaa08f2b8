// Pipeline: text chunks → strict or tolerant walk → batches → Trace, on any number of threads, in file order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "read/chrome_trace/assembler.h"
#include "read/chrome_trace/text_source.h"

namespace stepscope::read::chrome_trace {

struct PipelineEnd {
  bool closed = false;  // the event array's ']' was met
  std::string tail;     // the text behind it, up to kTailLimit bytes
  std::uint64_t tail_offset = 0;
  std::uint64_t tail_dropped = 0;  // bytes of the tail beyond the limit, unless all are blank
};

inline constexpr std::string_view kBlank(" \n\r\t\0", 5);  // zeros: space that was reserved and never written
inline constexpr std::size_t kTailLimit = 16 << 20;
inline constexpr std::size_t kEventLimit = 64 << 20;  // longest event that is waited for

// Runs `source`, which must have been started, to its end. `assembler` must have been made for threads + 1 workers;
// finish() has been called on it afterwards.
Result<PipelineEnd> run_pipeline(TextSource& source, Assembler& assembler, unsigned threads, bool tolerant_only,
                                 const std::string& path);

}  // namespace stepscope::read::chrome_trace
