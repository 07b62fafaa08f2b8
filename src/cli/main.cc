// The command line: builds --help from the registry of commands, hands over to one of them, and turns what was typed
// wrong into one line that says what would be right.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <exception>
#include <memory>
#include <new>

#include "base/version.h"
#include "cli/command.h"
#include "cli/help.h"
#include "cli/terminal.h"
#include "report/report.h"
#include "session/formats.h"

namespace stepscope::cli {
namespace {

constexpr const char* kAbout =
    "stepscope: where does the time of a PyTorch training step go?\n"
    "Reads traces of torch.profiler (Kineto) and any Chrome trace; records them too.";

constexpr const char* kFooter =
    R"(First steps:
  stepscope doctor                             what works on this machine, and how to fix what does not
  stepscope run -- python train.py             record an unchanged training; it names the report to ask for
  stepscope report trace.json.gz               report on traces that you already have
  stepscope report traces/ --html report.html  all ranks of a run, as one page

`stepscope COMMAND --help` shows the options and examples of a command.
Results go to standard output, messages to standard error. NO_COLOR, FORCE_COLOR and COLUMNS are honored.)";

std::string version_text() {
  std::string text =
      fmt::format("stepscope {}\ncommit {}\nschema_version {}\nformats", version(), commit(), report::kSchemaVersion);
  for (const auto& format : session::formats()) {
    text += fmt::format("\n  {}{}{}", format.name, format.summary.empty() ? "" : "  ", format.summary);
  }
  return text;
}

// `stepscope help report`, as other tools have it, is `stepscope report --help`.
int take_help_word(int argc, char** argv) {
  static char option[] = "--help";
  if (argc < 2 || std::string_view(argv[1]) != "help") return argc;
  argv[1] = argc > 2 ? argv[2] : option;
  if (argc > 2) argv[2] = option;
  return std::min(argc, 3);
}

int main_of(int argc, char** argv) {
  argc = take_help_word(argc, argv);
  CLI::App app{kAbout, "stepscope"};
  app.formatter(std::make_shared<HelpFormatter>(std::min(terminal_of(1).width, 100u)));
  app.set_help_flag("-h,--help", "This help");
  app.require_subcommand(0, 1);  // none is said below, in our own words
  app.set_version_flag("--version", version_text, "Version, commit, formats that can be read");
  app.footer(kFooter);
  int code = kOk;
  for (const auto& command : commands()) {
    CLI::App* sub = app.add_subcommand(std::string(command.name), std::string(command.summary));
    if (command.hidden) sub->group("");
    command.set_up(*sub, code);
  }
  try {
    app.parse(take_job_arguments(argc, argv), argv);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    if (chosen.empty() && !app.remaining().empty()) {  // of a command that there is not
      print_notice(usage_sentence(app, CLI::ExtrasError(app.remaining())));
      return kUsage;
    }
    return write_stdout((chosen.empty() ? app : *chosen.front()).help()) ? kOk : kRefused;
  } catch (const CLI::CallForVersion&) {
    return write_stdout(version_text() + "\n") ? kOk : kRefused;
  } catch (const CLI::ParseError& error) {
    print_notice(usage_sentence(app, error));
    return kUsage;
  }
  if (app.get_subcommands().empty()) {
    write_stderr(app.help());
    return kUsage;
  }
  return code;
}

}  // namespace
}  // namespace stepscope::cli

int main(int argc, char** argv) {
  using namespace stepscope;
  try {
    return cli::main_of(argc, argv);
  } catch (const std::bad_alloc&) {
    cli::print_notice("out of memory. Open fewer files at once, or use a machine with more memory");
  } catch (const std::exception& error) {
    cli::print_notice(
        fmt::format("a defect of stepscope: {}. Please report it with the command that you typed", error.what()));
  }
  return cli::kRefused;
}
