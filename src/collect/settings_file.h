// The file of settings: stepscope.toml, or [tool.stepscope] in pyproject.toml.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace stepscope::collect {

struct FileSetting {
  std::string name;    // as an option is called: with - where the file has _
  std::string text;    // as it would be typed: lists with commas, tables as KEY=VALUE with commas
  std::string origin;  // "stepscope.toml:3"
};

struct SettingsFile {
  std::string path;   // empty: there is none
  std::string shown;  // as people are told of it
  std::vector<FileSetting> settings;
};

// Looks in `folder` and those above it, the nearest first and in each stepscope.toml first; a pyproject.toml without
// [tool.stepscope] is passed by. `named`: this file and no other; "off": none. Errors are of kind usage and name the
// line: not to be read, no TOML, a value that no setting can have.
Result<SettingsFile> read_settings_file(const std::string& folder, const std::string& named);

}  // namespace stepscope::collect
