// `stepscope install-aliases`: other tools' commands that stepscope understands, under the names that people type.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <fstream>
#include <memory>

#include "base/shell_word.h"
#include "cli/command.h"
#include "cli/terminal.h"

namespace stepscope::cli {
namespace {

namespace fs = std::filesystem;

struct AliasOptions {
  std::string folder;
  bool force = false;
};

constexpr const char* kMark = "# Made by stepscope install-aliases";
constexpr const char* kAliasExamples = R"(Examples:
  stepscope install-aliases ~/.local/bin     chakra_converter, chakra_visualizer …

Each is a script of one line that calls this program. A file of another origin is not replaced without --force.)";

bool is_ours(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::getline(file, line);
  return line.starts_with(kMark);
}

Result<void> install_one(const std::string& program, std::string_view name, const AliasOptions& options) {
  const fs::path path = fs::path(options.folder) / name;
  std::error_code code;
  if (fs::exists(fs::symlink_status(path, code)) && !options.force && !is_ours(path)) {
    return fail({ErrorKind::usage, "is there already and was not made by stepscope", path.string(), std::nullopt,
                 "Choose another folder, or replace it with --force"});
  }
  const std::string text = fmt::format("#!/bin/sh\n{}\nexec {} {} \"$@\"\n", kMark, shell_word(program), name);
  if (auto written = write_file(path.string(), text); !written) return written;
  fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec, fs::perm_options::add,
                  code);
  if (!code) return {};
  return fail({ErrorKind::unreadable, "cannot be made executable: " + code.message(), path.string(), std::nullopt,
               "Choose a folder of your own"});
}

Result<void> install_aliases(const AliasOptions& options) {
  std::error_code code;
  const fs::path program = fs::read_symlink("/proc/self/exe", code);
  if (code) {
    return fail({ErrorKind::unsupported, "the path of this program is not known: " + code.message(), "", std::nullopt,
                 "Write the scripts by hand: exec stepscope NAME \"$@\""});
  }
  fs::create_directories(options.folder, code);
  if (!fs::is_directory(options.folder)) {
    return fail({ErrorKind::unreadable, "cannot be made a folder" + (code ? ": " + code.message() : std::string()),
                 options.folder, std::nullopt, "Name a folder of your own"});
  }
  std::string names;
  for (const Command& command : commands()) {
    if (!command.hidden) continue;
    if (auto done = install_one(program.string(), command.name, options); !done) return done;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", command.name);
  }
  return write_stdout(fmt::format("{} in {}\n", names, options.folder));
}

void set_up_install_aliases(CLI::App& app, int& code) {
  const auto options = std::make_shared<AliasOptions>();
  app.add_option("DIR", options->folder, "The folder, best one of PATH")->required()->type_name("");
  app.add_flag("--force", options->force, "Replace files that stepscope did not make");
  app.footer(kAliasExamples);
  app.callback([options, &code] { code = outcome(install_aliases(*options)); });
}

}  // namespace

Command install_aliases_command() {
  return {"install-aliases", "Install Chakra's commands under their own names", set_up_install_aliases};
}

}  // namespace stepscope::cli
