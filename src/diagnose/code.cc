#include "diagnose/code.h"

#include <algorithm>

namespace stepscope::diagnose {

const CodeFrame* Code::own() const {
  const auto last = std::find_if(stack.rbegin(), stack.rend(), [](const CodeFrame& frame) { return frame.own; });
  return last == stack.rend() ? nullptr : &*last;
}

const CodeFrame* Code::caller() const {
  const CodeFrame* last = own();
  for (const CodeFrame* frame = last; last != nullptr && frame != stack.data();) {
    if ((--frame)->own) return frame;
  }
  return nullptr;
}

std::string_view class_of_module_frame(std::string_view function) {
  constexpr std::string_view kModule = "nn.Module: ";
  if (!function.starts_with(kModule)) return {};
  function.remove_prefix(kModule.size());
  return function.substr(0, function.rfind('_'));
}

bool CodeFrame::is(std::string_view function_or_file) const {
  const bool is_file = function_or_file.find('/') != std::string_view::npos || function_or_file.ends_with(".py");
  return is_file ? file.starts_with(function_or_file) : function == function_or_file;
}

const CodeFrame* Code::below(std::string_view function_or_file) const {
  const CodeFrame* from = own();
  for (const CodeFrame* frame = from == nullptr ? stack.data() : from; frame != stack.data() + stack.size(); frame++) {
    if (frame->is(function_or_file)) return frame;
  }
  return nullptr;
}

void Code::put_into(Place& place) const {
  const CodeFrame* frame = own();
  if (frame == nullptr) return;
  place.function = frame->function;
  place.file = frame->file;
  place.line = call_line > 0 ? call_line : frame->line;
}

}  // namespace stepscope::diagnose
