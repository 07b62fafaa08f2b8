#include "cli/setting_options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace stepscope::cli {
namespace {

using collect::Form;
using collect::Setting;

std::string flag_of(const Setting& setting) { return "--" + std::string(setting.name); }

// A rank as --profile-ranks takes it: what follows the last of them is the job's command.
bool is_rank(std::string_view word) { return collect::parse_ranks(word).has_value(); }

}  // namespace

const char* const kSettingsFooter =
    R"(Each option is also a variable and a key of a file: --no-shapes is the same as
STEPSCOPE_NO_SHAPES=1 and as no-shapes = true. The file is stepscope.toml, or
[tool.stepscope] in pyproject.toml, in this folder or the nearest one above;
STEPSCOPE_CONFIG names another. An option wins over a variable, which wins over
the file. `stepscope doctor` lists what holds and where it was said.)";

struct SettingOptions::Values {
  std::map<std::string_view, std::string> texts;
  std::map<std::string_view, std::vector<std::string>> words;
};

SettingOptions::SettingOptions(CLI::App& app) : app_(&app), values_(std::make_shared<Values>()) {
  for (const Setting& setting : collect::settings()) {
    const std::string meaning(setting.meaning);
    CLI::Option* option = nullptr;
    if (setting.form == Form::flag) {
      option = app.add_flag(flag_of(setting), meaning);
    } else if (setting.form == Form::words) {
      option = app.add_option(flag_of(setting), values_->words[setting.name], meaning);
    } else {
      option = app.add_option(flag_of(setting), values_->texts[setting.name], meaning);
    }
    if (setting.form != Form::flag) option->type_name(std::string(setting.value));
    option->group(std::string(setting.section));
  }
}

collect::Typed SettingOptions::typed() const {
  collect::Typed out;
  for (const Setting& setting : collect::settings()) {
    const CLI::Option* option = app_->get_option(flag_of(setting));
    if (option->count() == 0) continue;
    std::string text;
    if (setting.form == Form::words) {
      for (const std::string& word : values_->words.at(setting.name)) text += (text.empty() ? "" : ",") + word;
    } else if (setting.form == Form::flag) {
      text = option->results().back();  // "true", or what stands in --stack=false
    } else {
      text = values_->texts.at(setting.name);
    }
    out[std::string(setting.name)] = text;
  }
  return out;
}

int values_of_option(std::string_view word, char* const* next, char* const* end) {
  const auto all = collect::settings();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Setting& s) { return flag_of(s) == word; });
  if (at == all.end() || at->form == Form::flag || next == end) return 0;
  if (at->form == Form::value) return 1;
  int count = 0;
  while (next + count != end && is_rank(next[count])) ++count;
  return count;
}

}  // namespace stepscope::cli
