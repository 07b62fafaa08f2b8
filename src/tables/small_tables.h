// Tables of the run with few rows, made as plain values: issues, files, devices, rules, metadata.
#pragma once

#include <span>
#include <string_view>

#include "model/answer.h"
#include "model/trace.h"

namespace stepscope::tables {

struct SmallTable {
  std::string_view name;
  std::string_view meaning;
  Table (*make)(const Run& run);
};

std::span<const SmallTable> small_tables();

}  // namespace stepscope::tables
