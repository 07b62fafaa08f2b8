#include "model/python_frames.h"

#include <algorithm>
#include <charconv>

namespace stepscope {

PythonFrame read_python_frame(std::string_view name) {
  const std::size_t colon = name.find("): ");
  const std::size_t open = colon == name.npos ? colon : name.rfind('(', colon);
  if (open != name.npos && !name.starts_with("<built-in")) {
    std::int64_t line = 0;
    const auto parsed = std::from_chars(name.data() + open + 1, name.data() + colon, line);
    if (parsed.ec == std::errc() && parsed.ptr == name.data() + colon) {
      return {std::string(name.substr(colon + 3)), std::string(name.substr(0, open)), line};
    }
  }
  constexpr std::string_view kMethod = "<built-in method ";
  const bool is_method = name.starts_with(kMethod);
  for (const std::string_view start : {kMethod, std::string_view("<built-in function ")}) {
    if (!name.starts_with(start)) continue;
    name.remove_prefix(start.size());
    name = name.substr(0, std::min(name.find(" of "), name.find('>')));
  }
  return {.function = std::string(name), .file = "", .is_method = is_method};
}

bool has_python_frames(const Trace& trace) {
  return std::any_of(trace.categories.begin(), trace.categories.end(),
                     [](const Category& category) { return category.kind == SliceKind::python_function; });
}

const Trace* trace_with_frames(const Run& run, const Trace& trace) {
  if (has_python_frames(trace)) return &trace;
  const auto step = std::find_if(run.stack_steps.begin(), run.stack_steps.end(),
                                 [&](const Trace& other) { return other.rank.rank == trace.rank.rank; });
  return step == run.stack_steps.end() ? nullptr : &*step;
}

}  // namespace stepscope
