// The annotations that can mark steps, and the windows that bound them.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "model/trace.h"

namespace stepscope::derive {

// Marks of one kind, all but strays on one thread, by start, none inside another.
struct StepMarks {
  std::vector<SliceId> profiler;   // ProfilerStep#N
  std::vector<SliceId> optimizer;  // Optimizer.step#… that end a round
  std::vector<SliceId> serving;    // execute_… (vLLM), step[…] (SGLang)
  std::vector<SliceId> repeated;   // an annotation that fills the recording by repeating; only looked for last
};

StepMarks find_step_marks(const Trace& trace);

struct Window {
  std::int64_t start_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();
  bool empty() const { return start_ns > end_ns; }
  void add(std::int64_t start, std::int64_t end) {
    start_ns = start < start_ns ? start : start_ns;
    end_ns = end > end_ns ? end : end_ns;
  }
};

Window host_window(const Trace& trace);    // ops, annotations, calls and Python frames
Window device_window(const Trace& trace);  // device work
// What the profiler says it recorded; without that, all of time.
Window recording_window(const Trace& trace);

// Does anything start on `track` at or after `time_ns`?
bool starts_after(const Trace& trace, TrackId track, std::int64_t time_ns);

std::int64_t number_after_hash(std::string_view name);  // "ProfilerStep#12" → 12; kAbsent: there is none

}  // namespace stepscope::derive
