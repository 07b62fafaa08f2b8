// `stepscope doctor`: what works on this machine, and the fix for what does not.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "base/version.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "collect/collect.h"
#include "collect/settings.h"
#include "collect/telemetry/probe.h"
#include "report/report.h"
#include "run/json_text.h"

namespace stepscope::cli {
namespace {

using collect::Check;
using collect::Status;
namespace telemetry = collect::telemetry;

constexpr int kDoctorVersion = 1;

struct DoctorOptions {
  std::string python, out, config;
  bool json = false;
};

using telemetry::Probe;
using SettingsRead = Result<collect::Settings>;

SettingsRead read_settings(const DoctorOptions& options) {
  collect::Typed typed;
  if (!options.out.empty()) typed["out"] = options.out;
  if (!options.config.empty()) typed["config"] = options.config;
  std::error_code code;
  return collect::read_settings(typed, std::filesystem::current_path(code).string());
}

Check check_settings(const SettingsRead& read) {
  if (!read) {
    Error error = read.error();
    std::string fix = std::exchange(error.hint, "");
    return {"settings", Status::failure, to_text(error), fix.empty() ? "Correct it" : std::move(fix), true};
  }
  if (!read->slips.empty()) {
    std::string slips;
    for (const std::string& slip : read->slips) slips += (slips.empty() ? "" : "; ") + slip;
    return {"settings", Status::warning, slips, "Rename or unset it", false};
  }
  const bool from_file = !read->file.empty();
  return {"settings", Status::ok, from_file ? "the file " + read->file : "no file of them here or above", "", true};
}

Check check_page() {
  if (report::to_html(Report{})) return {"HTML report", Status::ok, "its scripts are in this build", "", false};
  return {"HTML report", Status::warning, "this build was made without the page's scripts",
          "Install Node 18 or newer and build again", false};
}

std::string_view word(Status status) {
  return status == Status::ok ? "ok" : status == Status::warning ? "warning" : "failure";
}

std::string mark(Status status, const Terminal& terminal) {
  const std::string_view plain = status == Status::ok        ? (terminal.ascii ? "ok  " : "✓")
                                 : status == Status::warning ? (terminal.ascii ? "note" : "!")
                                                             : (terminal.ascii ? "FAIL" : "✗");
  if (!terminal.color) return std::string(plain);
  const int color = status == Status::ok ? 32 : status == Status::warning ? 33 : 31;
  return fmt::format("\033[{}m{}\033[0m", color, plain);
}

bool main_job_possible(const std::vector<Check>& checks) {
  return std::none_of(checks.begin(), checks.end(),
                      [](const Check& c) { return c.needed && c.status == Status::failure; });
}

// Name, value and origin in columns.
std::string settings_text(const collect::Settings& settings) {
  std::size_t names = 0, values = 0;
  for (const auto& one : settings.effective) {
    names = std::max(names, one.name.size());
    values = std::max(values, one.value.size());
  }
  std::string out = "\nSettings of stepscope run, and where they were said\n";
  for (const auto& one : settings.effective) {
    out += fmt::format("  {:<{}}  {:<{}}  {}\n", one.name, names, one.value, values, one.origin);
  }
  return out;
}

std::string telemetry_text(const std::vector<Probe>& probes, const Terminal& terminal) {
  std::string out = "\nTelemetry that stepscope run and monitor sample here\n";
  for (const Probe& probe : probes) {
    const telemetry::Collector& one = probe.collector;
    out += fmt::format("{} {:<17} ", mark(probe.absent ? Status::warning : Status::ok, terminal), one.name);
    if (!probe.absent) {
      out += fmt::format("{}{}\n", one.summary, one.on_request ? " (only when asked for)" : "");
      continue;
    }
    out += probe.absent->message + "\n";
    if (!probe.absent->hint.empty()) {
      out += fmt::format("{:{}}{} {}\n", "", terminal.ascii ? 23 : 20, terminal.ascii ? "->" : "→", probe.absent->hint);
    }
  }
  return out;
}

std::string as_text(const std::vector<Check>& checks, const SettingsRead& settings, const std::vector<Probe>& probes) {
  const Terminal terminal = terminal_of(1);
  std::string out;
  for (const Check& check : checks) {
    out += fmt::format("{} {:<17} {}\n", mark(check.status, terminal), check.name, check.found);
    if (!check.fix.empty())
      out += fmt::format("{:{}}{} {}\n", "", terminal.ascii ? 23 : 20, terminal.ascii ? "->" : "→", check.fix);
  }
  out += telemetry_text(probes, terminal);
  if (settings) out += settings_text(*settings);
  out += main_job_possible(checks) ? "\nReady. Next: stepscope run -- python train.py\n"
                                   : "\nNot ready: the lines marked above need their fix first.\n";
  return out;
}

std::string settings_json(const SettingsRead& settings) {
  using run::json_string;
  if (!settings) return "null";
  std::string rows;
  for (const auto& one : settings->effective) {
    rows += fmt::format("{}\n    {{\"name\": {}, \"value\": {}, \"origin\": {}}}", rows.empty() ? "" : ",",
                        json_string(one.name), json_string(one.value), json_string(one.origin));
  }
  return "[" + rows + "\n  ]";
}

std::string telemetry_json(const std::vector<Probe>& probes) {
  using run::json_string;
  std::string rows;
  for (const Probe& probe : probes) {
    rows +=
        fmt::format("{}\n    {{\"name\": {}, \"summary\": {}, \"on_request\": {}, \"absent\": {}, \"fix\": {}}}",
                    rows.empty() ? "" : ",", json_string(probe.collector.name), json_string(probe.collector.summary),
                    probe.collector.on_request, probe.absent ? json_string(probe.absent->message) : "null",
                    probe.absent && !probe.absent->hint.empty() ? json_string(probe.absent->hint) : "null");
  }
  return "[" + rows + "\n  ]";
}

std::string as_json(const std::vector<Check>& checks, const SettingsRead& settings, const std::vector<Probe>& probes) {
  using run::json_string;
  std::string rows;
  for (const Check& c : checks) {
    rows += fmt::format("{}\n    {{\"name\": {}, \"status\": \"{}\", \"found\": {}, \"fix\": {}, \"needed\": {}}}",
                        rows.empty() ? "" : ",", json_string(c.name), word(c.status), json_string(c.found),
                        c.fix.empty() ? "null" : json_string(c.fix), c.needed);
  }
  return fmt::format(
      "{{\n  \"schema_version\": {},\n  \"stepscope_version\": {},\n  \"ready\": {},\n  \"checks\": [{}\n  ],\n"
      "  \"telemetry\": {},\n  \"settings\": {}\n}}\n",
      kDoctorVersion, json_string(version()), main_job_possible(checks), rows, telemetry_json(probes),
      settings_json(settings));
}

int examine(const DoctorOptions& options) {
  const SettingsRead settings = read_settings(options);
  std::vector<Check> checks = collect::check_machine(options.python, settings ? settings->out : "stepscope");
  checks.push_back(check_settings(settings));
  checks.push_back(check_page());
  const std::vector<Probe> probes = telemetry::probe(telemetry::collectors());
  const std::string out = options.json ? as_json(checks, settings, probes) : as_text(checks, settings, probes);
  if (const auto written = write_stdout(out); !written) {
    print_error(written.error());
    return kRefused;
  }
  return main_job_possible(checks) ? kOk : kRefused;
}

void set_up_doctor(CLI::App& app, int& code) {
  auto options = std::make_shared<DoctorOptions>();
  app.add_option("--python", options->python, "Python to look at (default: of $VIRTUAL_ENV, else python3)");
  app.add_option("--out", options->out, "Folder where runs are to be written (default ./stepscope)")->type_name("DIR");
  app.add_option("--config", options->config, "File of settings, as for stepscope run")->type_name("FILE");
  app.add_flag("--json", options->json, "One JSON object");
  app.footer("Exit codes: 0 a job can be recorded and reported on, 1 something it needs is missing.");
  app.callback([options, &code] { code = examine(*options); });
}

}  // namespace

Command doctor_command() {
  return {"doctor", "Say what works on this machine, and how to fix what does not", set_up_doctor};
}

}  // namespace stepscope::cli
