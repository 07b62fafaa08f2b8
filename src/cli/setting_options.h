// The table of settings (collect/settings.h) as options of a command. Shared by the commands that record.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collect/settings.h"

namespace CLI {
class App;
}

namespace stepscope::cli {

// What --help says of the files and variables, and in which order they count.
extern const char* const kSettingsFooter;

// Adds the settings to `app` as options, grouped; the returned function gives what was typed, once `app` has parsed.
class SettingOptions {
 public:
  explicit SettingOptions(CLI::App& app);
  collect::Typed typed() const;

 private:
  struct Values;
  const CLI::App* app_;
  std::shared_ptr<Values> values_;
};

// How many of the words behind the option `word` (such as --steps) are its values, `next` being the first of them and
// `end` behind the last there is. 0 for what is no option of a setting, or says its value itself (--steps=10:15).
int values_of_option(std::string_view word, char* const* next, char* const* end);

}  // namespace stepscope::cli
