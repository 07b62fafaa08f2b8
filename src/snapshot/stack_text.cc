#include "snapshot/stack_text.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace stepscope::snapshot {
namespace {

constexpr std::size_t kFramesShown = 3;
constexpr std::size_t kLongestName = 80;  // of a function of C++
constexpr std::string_view kAutograd = "autograd: ";

bool is_python(const CudaSnapshot& snapshot, const SnapshotFrame& frame) {
  const std::string_view file = snapshot.strings[frame.file];
  return file.ends_with(".py") || file.starts_with('<') || (frame.line > 0 && !file.empty() && file != "??");
}

// Of torch, of what comes with Python, of code that was made at run time: not what a user can change.
bool is_foreign(std::string_view file) {
  constexpr std::array<std::string_view, 4> kForeign{"-packages/torch/", "<frozen ", "<string>", "_stepscope_hooks/"};
  const bool of_python = file.find("/lib/python3") != file.npos && file.find("-packages/") == file.npos;
  return of_python || std::any_of(kForeign.begin(), kForeign.end(),
                                  [&](std::string_view part) { return file.find(part) != file.npos; });
}

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.find_last_of("/\\");
  return slash == path.npos ? path : path.substr(slash + 1);
}

std::string one(const CudaSnapshot& snapshot, const SnapshotFrame& frame) {
  std::string text(base_name(snapshot.strings[frame.file]));
  if (frame.line != kNotRecorded) text += ":" + std::to_string(frame.line);
  const std::string_view function = snapshot.strings[frame.function];
  if (!function.empty()) text += " " + std::string(function);
  if (frame.fx_node != StringId::none) text += " (" + std::string(snapshot.strings[frame.fx_node]) + ")";
  return text;
}

template <class Wanted>
std::string joined(const CudaSnapshot& snapshot, StackId stack, const Wanted& wanted) {
  std::string text;
  std::size_t shown = 0;
  for (const FrameId id : snapshot.frames_of(stack)) {
    const SnapshotFrame& frame = snapshot.frames[id];
    if (!wanted(frame)) continue;
    text += (shown == 0 ? "" : " < ") + one(snapshot, frame);
    if (++shown == kFramesShown) break;
  }
  return text;
}

// "torch::autograd::generated::BmmBackward0::apply(…)" → "BmmBackward0", and AccumulateGrad.
std::string_view backward_operator(std::string_view function) {
  constexpr std::string_view kGenerated = "torch::autograd::generated::", kAccumulate = "AccumulateGrad";
  if (function.starts_with("torch::autograd::AccumulateGrad")) return kAccumulate;
  if (!function.starts_with(kGenerated)) return {};
  function.remove_prefix(kGenerated.size());
  const std::string_view name = function.substr(0, function.find_first_of(":_("));
  return name.find("Backward") == name.npos ? std::string_view() : name;
}

// The frames of recording the stack and of the allocator are in all stacks.
bool is_allocator(std::string_view function) {
  constexpr std::array<std::string_view, 8> kParts{
      "torch::unwind", "CapturedTraceback", "gather_with_cpp",        "CachingAllocator",
      "at::detail::",  "create_out(",       "set_output_raw_strided", "at::TensorBase at::detail"};
  return std::any_of(kParts.begin(), kParts.end(),
                     [&](std::string_view part) { return function.find(part) != function.npos; });
}

std::string native_text(const CudaSnapshot& snapshot, StackId stack) {
  std::string_view first;
  for (const FrameId id : snapshot.frames_of(stack)) {
    const std::string_view function = snapshot.strings[snapshot.frames[id].function];
    if (const std::string_view name = backward_operator(function); !name.empty())
      return std::string(kAutograd) + std::string(name);
    if (first.empty() && !is_allocator(function)) first = function;
  }
  return std::string(first.substr(0, std::min(first.find('('), kLongestName)));
}

}  // namespace

std::string where_text(const CudaSnapshot& snapshot, StackId stack) {
  std::string text = joined(snapshot, stack, [&](const SnapshotFrame& frame) {
    return is_python(snapshot, frame) && !is_foreign(snapshot.strings[frame.file]);
  });
  if (!text.empty()) return text;
  std::string native = native_text(snapshot, stack);
  if (native.starts_with(kAutograd)) return native;
  text = joined(snapshot, stack, [&](const SnapshotFrame& frame) { return is_python(snapshot, frame); });
  return text.empty() ? native : text;
}

std::string full_text(const CudaSnapshot& snapshot, StackId stack) {
  std::string text;
  for (const FrameId id : snapshot.frames_of(stack)) {
    const SnapshotFrame& frame = snapshot.frames[id];
    const std::string_view file = snapshot.strings[frame.file];
    if (!text.empty()) text += '\n';
    if (!file.empty() && file != "??") text += std::string(file);
    if (frame.line != kNotRecorded && frame.line != 0) text += ":" + std::to_string(frame.line);
    if (!text.empty() && text.back() != '\n') text += ' ';
    text += std::string(snapshot.strings[frame.function]);
  }
  return text;
}

}  // namespace stepscope::snapshot
