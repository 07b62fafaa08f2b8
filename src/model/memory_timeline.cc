#include "model/memory_timeline.h"

namespace stepscope {
namespace {

struct Known {
  std::string_view name;
  MemoryCategory category;
};

constexpr std::array<Known, kTimelineCategories> kCategories{{{"PARAMETER", MemoryCategory::parameter},
                                                              {"OPTIMIZER_STATE", MemoryCategory::optimizer_state},
                                                              {"INPUT", MemoryCategory::input},
                                                              {"TEMPORARY", MemoryCategory::temporary},
                                                              {"ACTIVATION", MemoryCategory::activation},
                                                              {"GRADIENT", MemoryCategory::gradient},
                                                              {"AUTOGRAD_DETAIL", MemoryCategory::temporary},
                                                              {"none", MemoryCategory::unknown}}};

}  // namespace

std::string_view to_string(TimelineAction action) {
  static constexpr std::array<std::string_view, kTimelineActions> kNames{"level", "preexisting", "create",
                                                                         "increment_version", "destroy"};
  const auto at = static_cast<std::size_t>(action);
  return at < kNames.size() ? kNames[at] : "";
}

std::string_view timeline_category_name(std::size_t number) {
  return number < kTimelineCategories ? kCategories[number].name : "";
}

MemoryCategory timeline_category(std::size_t number) {
  return number < kTimelineCategories ? kCategories[number].category : MemoryCategory::unknown;
}

}  // namespace stepscope
