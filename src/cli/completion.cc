// `stepscope completion SHELL`: a completion script made from the commands and options as they are, so that it cannot
// fall behind them.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <iterator>
#include <memory>

#include "cli/command.h"
#include "cli/terminal.h"
#include "session/session.h"

namespace stepscope::cli {
namespace {

// What completes the value of an option.
enum class Values { none, file, answer, other };

struct OptionSpec {
  std::vector<std::string> flags;  // "--json", "-o"
  std::string description;
  Values values = Values::none;
};

struct CommandSpec {
  std::string name, description;
  std::vector<OptionSpec> options;
  std::vector<std::string> words;  // fixed values of its positional, such as the shells; empty: files
};

std::string joined(const std::vector<std::string>& words, std::string_view separator = " ") {
  return fmt::format("{}", fmt::join(words, separator));
}

std::vector<std::string> answers() {
  const auto names = session::answer_names();
  return {names.begin(), names.end()};
}

// Options that complete: `type_name` says what the value is.
OptionSpec describe(const CLI::Option& option) {
  OptionSpec spec;
  for (const auto& name : option.get_lnames()) spec.flags.push_back("--" + name);
  for (const auto& name : option.get_snames()) spec.flags.push_back("-" + name);
  spec.description = option.get_description();
  spec.description = spec.description.substr(0, spec.description.find_first_of("\n;"));
  if (option.get_expected_max() == 0) return spec;
  const std::string type = option.get_type_name();
  spec.values = type == "FILE" || type == "PATH" || type == "DIR" ? Values::file
                : type == "NAME"                                  ? Values::answer
                                                                  : Values::other;
  return spec;
}

CommandSpec describe(const CLI::App& app) {
  CommandSpec spec{app.get_name(), app.get_description(), {}, {}};
  for (const auto* option : app.get_options()) {
    if (!option->get_positional()) spec.options.push_back(describe(*option));
  }
  if (spec.name == "completion") spec.words = {"bash", "zsh", "fish"};
  return spec;
}

std::vector<CommandSpec> describe_all(const CLI::App& root) {
  std::vector<CommandSpec> specs;
  for (const auto* command : root.get_subcommands({})) {
    if (!command->get_group().empty()) specs.push_back(describe(*command));  // hidden ones have none
  }
  return specs;
}

std::vector<std::string> flags_of(const CommandSpec& command, Values values) {
  std::vector<std::string> flags;
  for (const auto& option : command.options) {
    if (option.values == values) flags.insert(flags.end(), option.flags.begin(), option.flags.end());
  }
  return flags;
}

std::string bash_script(const CommandSpec& root, const std::vector<CommandSpec>& commands) {
  std::vector<std::string> names;
  for (const auto& command : commands) names.push_back(command.name);
  std::string cases;
  for (const auto& command : commands) {
    std::vector<std::string> flags;
    for (const auto& option : command.options) flags.insert(flags.end(), option.flags.begin(), option.flags.end());
    cases += fmt::format("    {})\n      case \"$before\" in\n", command.name);
    if (const auto with = flags_of(command, Values::answer); !with.empty()) {
      cases += fmt::format("        {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n", joined(with, "|"),
                           joined(answers()));
    }
    if (const auto with = flags_of(command, Values::file); !with.empty()) {
      cases += fmt::format(
          "        {}) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n",
          joined(with, "|"));
    }
    if (const auto with = flags_of(command, Values::other); !with.empty()) {
      cases += fmt::format("        {}) return ;;\n", joined(with, "|"));
    }
    cases += fmt::format("      esac\n      flags=\"{}\" words=\"{}\" ;;\n", joined(flags), joined(command.words));
  }
  std::vector<std::string> root_flags;
  for (const auto& option : root.options) root_flags.insert(root_flags.end(), option.flags.begin(), option.flags.end());
  return fmt::format(R"(# bash completion of stepscope. To use it now: source <(stepscope completion bash)
_stepscope() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" flags="" words=""
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{} {}" -- "$word"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{}  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *)
      if [ -n "$words" ]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
      else
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$word"))
      fi ;;
  esac
}}
complete -F _stepscope stepscope
)",
                     joined(names), joined(root_flags), cases);
}

// Inside single quotes of a shell.
std::string shell_quoted(std::string_view text, bool zsh_spec = false) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (zsh_spec && (c == '[' || c == ']' || c == ':' || c == '\\')) {
      out += std::string("\\") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string zsh_script(const CommandSpec&, const std::vector<CommandSpec>& commands) {
  std::string list, cases;
  for (const auto& command : commands) {
    list += fmt::format("    '{}:{}'\n", command.name, shell_quoted(command.description, true));
    cases += fmt::format("    {})\n      _arguments -s \\\n", command.name);
    for (const auto& option : command.options) {
      const std::string value = option.values == Values::file     ? ":file:_files"
                                : option.values == Values::answer ? fmt::format(":answer:({})", joined(answers()))
                                : option.values == Values::other  ? ":value:"
                                                                  : "";
      for (const auto& flag : option.flags) {
        cases += fmt::format("        '{}[{}]{}' \\\n", flag, shell_quoted(option.description, true), value);
      }
    }
    cases += command.words.empty() ? "        '*:path:_files' ;;\n"
                                   : fmt::format("        '1:shell:({})' ;;\n", joined(command.words));
  }
  return fmt::format(R"(#compdef stepscope
# zsh completion of stepscope. To use it now: source <(stepscope completion zsh)
_stepscope() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    _arguments '--help[Show help]' '--version[Show the version]'
    return
  fi
  local command="$words[2]"
  shift words
  (( CURRENT-- ))
  case "$command" in
{}  esac
}}
compdef _stepscope stepscope
)",
                     list, cases);
}

std::string fish_option(std::string_view condition, const OptionSpec& option) {
  std::string line = fmt::format("complete -c stepscope -n '{}'", condition);
  for (const auto& flag : option.flags)
    line += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
  if (option.values == Values::file) line += " -r -F";
  if (option.values == Values::answer) line += fmt::format(" -x -a '{}'", joined(answers()));
  if (option.values == Values::other) line += " -x";
  return fmt::format("{} -d '{}'\n", line, shell_quoted(option.description));
}

std::string fish_script(const CommandSpec& root, const std::vector<CommandSpec>& commands) {
  std::string text = "# fish completion of stepscope. To use it now: stepscope completion fish | source\n";
  for (const auto& option : root.options) text += fish_option("__fish_use_subcommand", option);
  for (const auto& command : commands) {
    text += fmt::format("complete -c stepscope -n __fish_use_subcommand -f -a {} -d '{}'\n", command.name,
                        shell_quoted(command.description));
    const std::string condition = "__fish_seen_subcommand_from " + command.name;
    if (!command.words.empty())
      text += fmt::format("complete -c stepscope -n '{}' -f -a '{}'\n", condition, joined(command.words));
    for (const auto& option : command.options) text += fish_option(condition, option);
  }
  return text;
}

void set_up_completion(CLI::App& app, int& code) {
  const auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  app.footer(R"(Examples:
  source <(stepscope completion bash)                                  for this shell
  stepscope completion bash > ~/.local/share/bash-completion/completions/stepscope
  stepscope completion zsh > "${fpath[1]}/_stepscope"
  stepscope completion fish > ~/.config/fish/completions/stepscope.fish)");
  app.callback([&app, shell, &code] {
    const CommandSpec root = describe(*app.get_parent());
    const auto commands = describe_all(*app.get_parent());
    const std::string script = *shell == "bash"  ? bash_script(root, commands)
                               : *shell == "zsh" ? zsh_script(root, commands)
                                                 : fish_script(root, commands);
    code = outcome(write_stdout(script));
  });
}

}  // namespace

Command completion_command() {
  return {"completion", "Print a completion script for bash, zsh or fish", set_up_completion};
}

}  // namespace stepscope::cli
