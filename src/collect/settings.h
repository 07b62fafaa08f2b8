// The settings of `stepscope run`: one table that the options, the environment, the file and the doctor are made from.
//
// A setting NAME is the option --NAME, the variable STEPSCOPE_NAME (upper case, _ for -) and the key NAME of the file
// (settings_file.h). An option wins over the environment, which wins over the file. A wrong value is told wherever it
// stands, also where another source overrides it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "collect/capture.h"
#include "collect/telemetry/sampler.h"

namespace stepscope::collect {

enum class Trigger { none, signal, command };

struct Settings {
  Capture capture;
  Trigger trigger = Trigger::none;
  std::string out = "stepscope";  // folder of all runs
  std::string job;                // its name; empty: from the command
  std::vector<std::string> nsys_options;
  bool trace = true;                       // false: steps, phases and telemetry alone
  bool telemetry = true;                   // sampled beside the job
  std::vector<telemetry::Choice> sampled;  // empty: as usual
  std::string openmetrics;                 // file of the newest values; empty: none
  std::string left_out;                    // of what was asked for: nsys cannot record it
  std::string file;                        // of settings, as people are told of it; empty: none

  struct Effective {
    std::string name, value, origin;  // "default", "stepscope.toml:3", "STEPSCOPE_WITH", "--with"
  };
  std::vector<Effective> effective;  // in the order of the table
  std::vector<std::string> slips;    // sentences: variables that are nearly a setting's, and do nothing
};

enum class Form { flag, value, words };  // on the command line; words: one or more

struct SettingDraft;  // what the values are collected in

struct Setting {
  std::string_view name;
  Form form = Form::value;
  std::string_view value;     // what --help calls it
  std::string_view section;   // of --help
  std::string_view meaning;   // one sentence
  std::string_view unset;     // the default as people read it; empty: nothing to show
  std::string_view question;  // settings of one question exclude each other …
  std::string_view answer;    // … unless they give the same answer to it together
  bool adds = false;          // to what lower sources answer, instead of replacing it
  Result<void> (*take)(std::string_view text, SettingDraft& draft) = nullptr;
};

// All of them, in the order of --help.
std::span<const Setting> settings();

// What was typed: name → text; words joined with commas.
using Typed = std::map<std::string, std::string, std::less<>>;

// The settings as `typed`, the environment and the file found from `folder` say together. Every error is of kind usage.
Result<Settings> read_settings(const Typed& typed, const std::string& folder);

std::string variable_of(std::string_view name);  // STEPSCOPE_NAME

}  // namespace stepscope::collect
