// The variables by which haiprof is told what to do, as settings of ours: a job script that has them needs no change.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope::collect {

struct HaiprofSetting {
  std::string_view setting;  // its name here
  std::string text, origin;  // "120", "HAIPROF_TIME"
};

// Empty where HAIPROF_ENABLED is 0 or nothing of it is set. `variable` gives "" for one that is not set. What has no
// counterpart is told in `slips`.
std::vector<HaiprofSetting> haiprof_settings(const std::function<std::string(const std::string&)>& variable,
                                             std::vector<std::string>& slips);

}  // namespace stepscope::collect
