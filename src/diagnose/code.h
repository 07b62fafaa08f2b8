// What of the program's code ran: a stack of Python frames, and where the program calls what is below it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/answer.h"
#include "model/python_frames.h"

namespace stepscope::diagnose {

// "Net" of "nn.Module: Net_0", as torch calls the frame of a module; empty: it is another function.
std::string_view class_of_module_frame(std::string_view function);

struct CodeFrame : PythonFrame {
  bool own = false;  // of the program itself, not of Python, torch or another library

  // Is it called so, or does its file begin so ("torch/_dynamo/", "socket.py")?
  bool is(std::string_view function_or_file) const;
  std::string_view module_class() const { return class_of_module_frame(function); }
  bool is_module() const { return !module_class().empty(); }
};

// What the program did in a stretch: most of its time.
struct Code {
  std::vector<CodeFrame> stack;  // outermost first; empty: not known
  std::int64_t call_line = 0;    // where the innermost function of the program calls what is below it, or of the
                                 // comprehension of it that is busy itself; 0: not known
  std::int64_t caller_line = 0;  // where caller() calls that function, behind a "for", and not on each of its items; 0:
                                 // not known
  std::int64_t seen_ns = 0;      // what the stretch took where its frames were recorded; 0: not known

  // The innermost function of the program itself; nullptr: none.
  const CodeFrame* own() const;
  // The function of the program that calls that one; nullptr: none.
  const CodeFrame* caller() const;
  // A frame from that one inwards which is called so, or whose file begins so; nullptr: none.
  const CodeFrame* below(std::string_view function_or_file) const;
  void put_into(Place& place) const;
};

// A function of the program: file and first line; empty: none of the program's own.
using Function = std::pair<std::string, std::int64_t>;
inline Function function_of(const CodeFrame& frame) { return {frame.file, frame.line}; }
// The innermost one that the code is of.
inline Function function_of(const Code& code) {
  const CodeFrame* own = code.own();
  return own == nullptr ? Function() : function_of(*own);
}

}  // namespace stepscope::diagnose
