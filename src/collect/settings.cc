// Joins what was typed, the environment and the file: collect all, choose per question, apply from the lowest source
// to the highest.
#include "collect/settings.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "base/did_you_mean.h"
#include "collect/settings_draft.h"
#include "collect/settings_file.h"
#include "collect/settings_haiprof.h"

namespace stepscope::collect {
namespace fs = std::filesystem;
namespace {

// What the program reads beside the settings, as far as it is near to one of them.
constexpr std::array<std::string_view, 2> kOtherVariables{"STEPSCOPE_RUN", "STEPSCOPE_LIB"};

enum Source { kFile, kEnvironment, kTyped };  // a later one wins

struct Given {
  const Setting* setting = nullptr;
  Source source = kFile;
  std::string text, origin;
  bool is_used = true;
};

const Setting* find(std::string_view name) {
  const auto all = settings();
  const auto at = std::find_if(all.begin(), all.end(), [&](const Setting& s) { return s.name == name; });
  return at == all.end() ? nullptr : &*at;
}

// As the source calls it: "--steps", "STEPSCOPE_STEPS", "steps".
std::string name_in(const Given& given) {
  return given.source == kFile ? std::string(given.setting->name) : given.origin;
}

// "--steps: MESSAGE", "stepscope.toml:3: steps: MESSAGE".
Error located(const Given& given, Error error) {
  error.kind = ErrorKind::usage;
  error.message = name_in(given) + ": " + error.message;
  if (given.source == kFile) error.file = given.origin;
  return error;
}

Error unknown_setting(const FileSetting& given) {
  std::vector<std::string_view> names;
  for (const Setting& s : settings()) {
    if (s.name != "config") names.push_back(s.name);
  }
  Error error = unknown_name("setting", shown(given.name), names);
  error.file = given.origin;
  return error;
}

Result<std::vector<Given>> from_file(const SettingsFile& file) {
  std::vector<Given> out;
  for (const FileSetting& one : file.settings) {
    const Setting* const setting = find(one.name);
    if (setting == nullptr || setting->name == "config") return fail(unknown_setting(one));
    Given given{setting, kFile, one.text, one.origin};
    for (const Given& before : out) {
      if (before.setting == setting) return fail(located(given, {ErrorKind::usage, "it is set twice", {}, {}, ""}));
    }
    // A path is meant from where the file lies, wherever the command is typed.
    const bool is_path = setting->value == "DIR" || setting->value == "FILE";
    if (is_path && !one.text.empty()) {
      const bool at_home = one.text == "~" || one.text.starts_with("~/");  // no shell reads this file
      const char* const home = at_home ? std::getenv("HOME") : nullptr;
      given.text =
          home != nullptr ? home + one.text.substr(1) : (fs::path(file.path).parent_path() / one.text).string();
    }
    out.push_back(std::move(given));
  }
  return out;
}

std::string environment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

void add_environment(std::vector<Given>& all, std::vector<std::string>& slips) {
  for (const Setting& setting : settings()) {
    const std::string name = variable_of(setting.name);
    if (std::string value = environment(name); !value.empty()) {
      all.push_back({&setting, kEnvironment, std::move(value), name});
    }
  }
  for (HaiprofSetting& one : haiprof_settings(environment, slips)) {  // our own variables win
    const Setting* const setting = find(one.setting);
    const auto same = [&](const Given& given) { return given.source == kEnvironment && given.setting == setting; };
    if (std::any_of(all.begin(), all.end(), same)) continue;
    all.push_back({setting, kEnvironment, std::move(one.text), std::move(one.origin)});
  }
}

void add_typed(const Typed& typed, std::vector<Given>& all) {
  for (const Setting& setting : settings()) {
    if (const auto given = typed.find(setting.name); given != typed.end()) {
      all.push_back({&setting, kTyped, given->second, "--" + std::string(setting.name)});
    }
  }
}

bool is_off(const Given& given) {
  const auto on = parse_switch(given.text);
  return on && !*on;
}

// Every value is looked at, also those that another source overrides.
Result<void> check_values(const std::vector<Given>& all) {
  for (const Given& given : all) {
    SettingDraft unused;
    const auto taken = given.setting->take(given.text, unused);
    if (!taken) return fail(located(given, taken.error()));
  }
  return {};
}

// Marks what is not used: the same setting or another answer to the same question in a lower source.
Result<void> choose(std::vector<Given>& all) {
  for (Given& given : all) {
    for (const Given& other : all) {
      if (&other == &given) continue;
      const bool same = other.setting == given.setting;
      const bool same_question = !given.setting->question.empty() && other.setting->question == given.setting->question;
      if (same && other.source > given.source) given.is_used = false;
      if (!same_question || same) continue;
      if (other.source > given.source && !other.setting->adds) given.is_used = false;
      if (other.source != given.source || other.setting->answer == given.setting->answer) continue;
      Error error{ErrorKind::usage, "", {}, {}, "Leave one of them out"};
      error.message = name_in(given) + " and " + name_in(other) + " do not go together";
      if (given.source == kFile) error.file = given.origin;
      return fail(std::move(error));
    }
  }
  return {};
}

// --profile-step-start 10 --profile-step-end 12, --time 15 --warmup 120: two settings that make one value.
Result<void> join_pairs(SettingDraft& draft, const std::vector<Given>& all) {
  constexpr std::int64_t kMegatronStart = 10, kMegatronEnd = 12;  // its own defaults
  Capture& capture = draft.out.capture;
  for (const Given& given : all) {
    if (!given.is_used) continue;
    if (given.setting->answer == "profile-step") {
      const Window window{draft.step_start.value_or(kMegatronStart), draft.step_end.value_or(kMegatronEnd)};
      const std::string text = to_text(std::vector{window});
      if (window.first >= window.end) {
        const bool lone_start = draft.step_start && !draft.step_end;
        return fail(located(given, {ErrorKind::usage,
                                    "the steps " + text + " are none",
                                    {},
                                    {},
                                    lone_start ? "Give --profile-step-end too: without it the end is Megatron's 12"
                                               : "The end is not recorded"}));
      }
      capture.steps = {window};
    } else if (given.setting->name == "time") {
      const auto stretch = stretch_after(draft.warmup, *draft.time);
      if (!stretch) return fail(located(given, stretch.error()));
      capture.seconds = *stretch;
    } else if (given.setting->name == "nsys-options" && given.source == kTyped && !capture.nsys) {
      return fail(located(given, {ErrorKind::usage, "they are for --nsys", {}, {}, "Add --nsys"}));
    } else if (given.setting->name == "warmup" && given.source == kTyped && !draft.time) {
      return fail(located(given, {ErrorKind::usage, "it is the wait before --time", {}, {}, "Add --time SECONDS"}));
    }
  }
  return {};
}

// The setting that this one is a part of; empty: it stands by itself.
std::string_view whole_of(std::string_view name) {
  if (name == "memory-steps") return "memory";
  const bool history = name == "max-entries" || name == "memory-every" || name == "memory-snapshot-path";
  return history ? "memory-history" : "";
}

// --max-entries and the like say nothing by themselves. The ranks of the history are those of the timeline where any
// are named, else the last, as Megatron has it.
Result<void> join_memory(SettingDraft& draft, const std::vector<Given>& all) {
  for (const Given& given : all) {
    if (given.is_used && given.setting->question == "ranks") draft.memory.ranks = draft.out.capture.ranks;
    const std::string whole(whole_of(given.setting->name));
    const bool is_there = whole == "memory" ? draft.memory_state : draft.memory_history;
    if (!whole.empty() && given.is_used && given.source == kTyped && !is_there) {
      return fail(located(given, {ErrorKind::usage, "it is for --" + whole, {}, {}, "Add --" + whole}));
    }
  }
  if (draft.memory_history) draft.out.capture.memory_history = draft.memory;
  if (draft.memory_state) draft.out.capture.memory_steps = draft.memory_steps;
  return {};
}

// Without a timeline nothing is recorded unless a request asks for it: the marks of steps and phases are always kept.
Result<void> leave_out_trace(SettingDraft& draft, const std::vector<Given>& all) {
  if (draft.out.trace) return {};
  Capture& capture = draft.out.capture;
  for (const Given& given : all) {
    const std::string_view question = given.setting->question;
    if (!given.is_used || given.source != kTyped || (question != "when" && given.setting->name != "nsys")) continue;
    return fail(located(given, {ErrorKind::usage,
                                "it says which timeline, and --trace=false that there is none",
                                {},
                                {},
                                "Leave one of them out"}));
  }
  capture.steps.clear();
  capture.cycle.reset();
  capture.seconds.reset();
  capture.nsys = false;
  capture.on_request = true;
  return {};
}

// nsys is told its windows before the job starts, so that none is automatic; it has no parts but shapes and modules.
void fit_to_nsys(Settings& out, const std::vector<Given>& all) {
  constexpr Window kUsual{10, 15};
  Capture& capture = out.capture;
  if (!capture.on_request && capture.steps.empty() && !capture.cycle && !capture.seconds) capture.steps = {kUsual};
  Parts missed = capture.with;
  capture.with = {missed.shapes, false, missed.modules, false, false, false};
  const bool named = std::any_of(all.begin(), all.end(), [](const Given& given) {
    return given.is_used && given.setting->question == "parts" && !given.setting->adds;
  });
  missed.shapes = missed.modules = false;
  missed.memory &= named;  // else it is there without being asked for
  out.left_out = to_text(missed);
}

// The variables of the environment that are nearly a setting's: a slip that would go unnoticed.
std::vector<std::string> slips_in_environment() {
  static constexpr std::size_t kSlip = 2;  // edits
  std::vector<std::string> out;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; variable++) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with("STEPSCOPE_")) continue;
    std::string nearest;
    std::size_t edits = kSlip + 1;
    for (const Setting& setting : settings()) {
      const std::string known = variable_of(setting.name);
      if (const std::size_t distance = edit_distance(name, known); distance < edits) nearest = known, edits = distance;
    }
    const bool is_ours = std::find(kOtherVariables.begin(), kOtherVariables.end(), name) != kOtherVariables.end();
    if (edits > 0 && edits <= kSlip && !is_ours) {
      out.push_back(std::string(name) + " is no setting; is " + nearest + " meant?");
    }
  }
  return out;
}

void list_effective(const std::vector<Given>& all, Settings& out) {
  for (const Setting& setting : settings()) {
    bool is_answered = false;
    for (const Given& given : all) {
      if (!given.is_used) continue;
      if (given.setting == &setting) out.effective.push_back({std::string(setting.name), given.text, given.origin});
      is_answered |= given.setting == &setting ||
                     (!setting.question.empty() && given.setting->question == setting.question && !given.setting->adds);
    }
    if (!is_answered && !setting.unset.empty()) {
      out.effective.push_back({std::string(setting.name), std::string(setting.unset), "default"});
    }
    if (setting.name == "with" && !out.effective.empty() && out.effective.back().name == "with") {
      const std::string parts = to_text(out.capture.with);  // as the switches leave it
      out.effective.back().value = parts.empty() ? "none" : parts;
    }
  }
}

// "": it will be written, or nobody asked for it.
std::string why_no_openmetrics(const Settings& settings) {
  if (settings.openmetrics.empty()) return "";
  if (!settings.telemetry) return "openmetrics writes what telemetry samples, which is off: no " + settings.openmetrics;
  std::error_code code;
  const fs::path folder = fs::absolute(settings.openmetrics, code).parent_path();
  return fs::is_directory(folder, code) ? "" : "openmetrics: there is no folder " + folder.string();
}

}  // namespace

std::string variable_of(std::string_view name) {
  std::string out = "STEPSCOPE_";
  for (const char c : name) {
    out += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return out;
}

Result<Settings> read_settings(const Typed& typed, const std::string& folder) {
  const auto named = typed.find("config");
  const auto file = read_settings_file(folder, named != typed.end() ? named->second : environment("STEPSCOPE_CONFIG"));
  if (!file) return fail(file.error());
  auto all = from_file(*file);
  if (!all) return fail(all.error());
  std::vector<std::string> slips = slips_in_environment();
  add_environment(*all, slips);
  add_typed(typed, *all);
  if (const auto checked = check_values(*all); !checked) return fail(checked.error());
  // What is switched off says nothing: profiling = false does not exclude `with`.
  std::erase_if(*all, [](const Given& g) { return g.setting->form == Form::flag && !g.setting->adds && is_off(g); });
  if (const auto chosen = choose(*all); !chosen) return fail(chosen.error());
  SettingDraft draft;
  draft.out.file = file->shown;
  for (const Given& given : *all) {  // the lowest source first
    if (!given.is_used) continue;
    if (const auto taken = given.setting->take(given.text, draft); !taken) return fail(located(given, taken.error()));
  }
  if (const auto joined = join_pairs(draft, *all); !joined) return fail(joined.error());
  if (const auto joined = join_memory(draft, *all); !joined) return fail(joined.error());
  if (const auto left = leave_out_trace(draft, *all); !left) return fail(left.error());
  if (draft.out.capture.nsys) fit_to_nsys(draft.out, *all);
  list_effective(*all, draft.out);
  if (std::string why = why_no_openmetrics(draft.out); !why.empty()) slips.push_back(std::move(why));
  draft.out.slips = std::move(slips);
  return std::move(draft.out);
}

}  // namespace stepscope::collect
