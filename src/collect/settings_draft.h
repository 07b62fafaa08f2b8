// What the values of settings are collected in before they are joined: shared by settings_table.cc and settings.cc.
#pragma once

#include <optional>

#include "collect/settings.h"

namespace stepscope::collect {

struct SettingDraft {
  Settings out;
  std::optional<std::int64_t> step_start, step_end;
  std::optional<double> time, warmup;
  bool memory_history = false, memory_state = false;
  MemoryHistory memory;
  std::int64_t memory_steps = 5;  // as InternEvo's profiler has it
};

}  // namespace stepscope::collect
