// Modules: which part of the model ran when.
//
// The hooks of `stepscope run` write a range per module call: "stepscope.module: layers.0.attn (Attention)", as an
// operator, since that is what torch's cheap ranges are, or by NVTX; here they become what they mean, annotations named
// by the path. With Python stacks recorded every nn.Module call is a frame of its own ("nn.Module: Linear_0"). Without
// either the program's own annotations are the best there is; those that mark steps, whole passes, data loading,
// optimizers or collectives are not parts of the model and are left out.
#include <algorithm>
#include <array>

#include "derive/passes.h"
#include "derive/phase_names.h"

namespace stepscope::derive {
namespace {

constexpr std::string_view kFrame = "nn.Module: ";

std::string_view bare(std::string_view name) {
  while (!name.empty() && (name.front() == '#' || name.front() == ' ')) name.remove_prefix(1);
  while (!name.empty() && (name.back() == '#' || name.back() == ' ')) name.remove_suffix(1);
  return name;
}

bool names_a_module(std::string_view name) {
  constexpr std::array<std::string_view, 8> kPasses{"forward", "backward", "loss",    "train_step",
                                                    "step",    "train",    "Forward", "Backward"};
  constexpr std::array<std::string_view, 6> kMarks{"ProfilerStep", "Optimizer.", "execute_",
                                                   "step[",        "[param|",    "PyTorch Profiler"};
  if (std::find(kPasses.begin(), kPasses.end(), bare(name)) != kPasses.end()) return false;
  if (std::any_of(kMarks.begin(), kMarks.end(), [&](std::string_view mark) { return name.starts_with(mark); }))
    return false;
  const Phase phase = phase_of_name(name, SliceKind::user_annotation).value_or(Phase::other);
  return phase == Phase::other || phase == Phase::forward || phase == Phase::backward;
}

struct ModuleName {
  StringId name = StringId::none, type = StringId::none;
};

// "layers.0.attn" and "Attention" of the hooks' own ranges.
ModuleName of_range(StringPool& strings, std::string_view text) {
  text.remove_prefix(kModuleRange.size());
  const std::size_t about = text.rfind(" (");
  if (about == text.npos) return {strings.intern(text)};
  std::string_view type = text.substr(about + 2);
  if (type.ends_with(')')) type.remove_suffix(1);
  return {strings.intern(text.substr(0, about)), strings.intern(type)};
}

// "Linear_0" and "Linear" of a frame: the calls of a class are numbered.
ModuleName of_frame(StringPool& strings, std::string_view text) {
  text.remove_prefix(kFrame.size());
  const std::size_t number = text.find_last_not_of("0123456789");
  const bool numbered = number != text.npos && number > 0 && number + 1 < text.size() && text[number] == '_';
  return {strings.intern(text), strings.intern(numbered ? text.substr(0, number) : text)};
}

void add_ranges(Trace& trace) {
  std::vector<ModuleName> known(trace.strings.size());
  std::vector<bool> asked(trace.strings.size(), false);
  CategoryId category = CategoryId::none;
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const SliceId id = static_cast<SliceId>(row);
    const StringId name = trace.slices.name[id];
    const SliceKind kind = trace.kind(id);
    if (name == StringId::none || (kind != SliceKind::cpu_op && kind != SliceKind::user_annotation)) continue;
    const std::size_t index = static_cast<std::size_t>(name);
    if (!asked[index]) {
      asked[index] = true;
      const std::string_view text = trace.strings[name];
      if (text.starts_with(kModuleRange)) known[index] = of_range(trace.strings, text);
    }
    if (known[index].name == StringId::none) continue;
    if (category == CategoryId::none) {
      category = static_cast<CategoryId>(trace.categories.size());
      trace.categories.push_back({trace.strings.intern("module"), SliceKind::user_annotation});
    }
    trace.slices.category[id] = category;
    trace.slices.name[id] = known[index].name;
    trace.modules.push_back({id, known[index].name, known[index].type});
  }
}

void add_frames(Trace& trace) {
  std::vector<ModuleName> known(trace.strings.size());
  std::vector<bool> asked(trace.strings.size(), false);
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const SliceId id = static_cast<SliceId>(row);
    const StringId name = trace.slices.name[id];
    if (name == StringId::none || trace.kind(id) != SliceKind::python_function) continue;
    const std::size_t index = static_cast<std::size_t>(name);
    if (!asked[index]) {
      asked[index] = true;
      const std::string_view text = trace.strings[name];
      if (text.starts_with(kFrame)) known[index] = of_frame(trace.strings, text);
    }
    if (known[index].name != StringId::none) trace.modules.push_back({id, known[index].name, known[index].type});
  }
}

void add_annotations(Trace& trace) {
  std::vector<char> verdict(trace.strings.size(), 0);
  for (std::size_t row = 0; row < trace.slices.size(); row++) {
    const SliceId id = static_cast<SliceId>(row);
    const StringId name = trace.slices.name[id];
    if (name == StringId::none || trace.kind(id) != SliceKind::user_annotation) continue;
    char& known = verdict[static_cast<std::size_t>(name)];
    if (known == 0) known = names_a_module(trace.strings[name]) ? 'y' : 'n';
    if (known == 'y') trace.modules.push_back({id, name, StringId::none});
  }
}

}  // namespace

Result<void> modules(Trace& trace, const DeriveOptions&) {
  add_ranges(trace);
  if (trace.modules.empty()) add_frames(trace);
  if (trace.modules.empty()) add_annotations(trace);
  return {};
}

}  // namespace stepscope::derive
