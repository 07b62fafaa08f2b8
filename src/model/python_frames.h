// Frames of Python as torch's profiler records them, and which trace has those of a rank.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/trace.h"

namespace stepscope {

// "torch/nn/modules/module.py(1501): _call_impl". What is built in has neither file nor line: of "<built-in method item
// of Tensor object at 0x7f…>" the function is "item"; any other name is the function as it is.
struct PythonFrame {
  std::string function, file;
  std::int64_t line = 0;   // at which the function begins; 0: none
  bool is_method = false;  // built in, of an object and not of a module
};

PythonFrame read_python_frame(std::string_view name);

bool has_python_frames(const Trace& trace);
// The trace that has those of a rank: its own, or that of the one step recorded for them; nullptr: none.
const Trace* trace_with_frames(const Run& run, const Trace& trace);

}  // namespace stepscope
