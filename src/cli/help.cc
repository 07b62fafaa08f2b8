#include "cli/help.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include "base/did_you_mean.h"
#include "base/duration.h"

namespace stepscope::cli {
namespace {

constexpr std::size_t kNameColumn = 24;

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

// "FILE" of "FILE:CHECK".
std::string value_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "unknown WHAT 'WORD'; did you mean …? See …".
std::string unknown(std::string_view what, const std::string& word, const std::vector<std::string>& names,
                    std::string_view see) {
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  Error error = unknown_name(what, word.substr(0, word.find('=')), candidates);
  error.hint = fmt::format("See {} --help", see);
  return to_text(error);
}

std::string command_sentence(const CLI::App& command, const CLI::ParseError& error, const std::string& see) {
  const auto left = command.remaining();
  const bool is_option = !left.empty() && left.front().starts_with('-');  // also behind "PATH is required"
  if (is_option || (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !left.empty())) {
    return unknown(is_option ? "option" : "argument", left.front(), option_names(command), see);
  }
  std::string sentence = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name = sentence.substr(0, sentence.find(':'));
    const CLI::Option* option = command.get_option_no_throw(name);
    if (option != nullptr) sentence = fmt::format("{} needs a value, {}", name, value_name(*option));
  } else if (const std::size_t at = sentence.find(" excludes "); at != std::string::npos) {
    sentence = fmt::format("{} and {} do not go together", sentence.substr(0, at), sentence.substr(at + 10));
  }
  return fmt::format("{}. See {} --help", sentence, see);
}

// The words in lines of at most `width`, each after `indent` blanks. A word that is too long keeps a line of its own.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width) {
  std::string out, line(indent, ' ');
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (line.size() > indent && line.size() + 1 + word.size() > width) {
      out += line + "\n";
      line.assign(indent, ' ');
    }
    line += (line.size() > indent ? " " : "") + word;
  }
  return line.size() > indent ? out + line + "\n" : out;
}

// Examples are "  COMMAND   what it does": in a narrow terminal the second part goes below the first. The command
// itself is never broken, so that it can be copied.
std::string footer_line(const std::string& line, std::size_t width) {
  if (line.size() <= width) return line + "\n";
  const std::size_t start = line.find_first_not_of(' ');
  if (start == 0) return wrapped(line, 0, width);
  const std::size_t gap = line.find("  ", start);
  if (gap == std::string::npos) return line + "\n";
  return line.substr(0, gap) + "\n" + wrapped(line.substr(gap), start + 4, width);
}

}  // namespace

HelpFormatter::HelpFormatter(std::size_t width) : width_(std::max<std::size_t>(width, 50)) {
  column_width(kNameColumn);
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  if (app->get_parent() != nullptr) name = app->get_parent()->get_name() + " " + app->get_name();
  return "\n" + Formatter::make_usage(app, name);
}

// One blank line between groups, where the plain formatter leaves two.
std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  const bool is_first = group == "Options" || group == "Positionals";
  const std::string text = Formatter::make_group(std::move(group), is_positional, std::move(options));
  return is_first || text.empty() ? text : text.substr(1);
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string name = make_option_name(option, is_positional);
  std::replace(name.begin(), name.end(), ',', ' ');
  if (!is_positional && option->get_type_size() != 0) name += " " + value_name(*option);
  return entry(name, option->get_description());
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  std::string out;
  std::istringstream lines(app->get_footer());
  for (std::string line; std::getline(lines, line);) out += footer_line(line, width_);
  return out;
}

std::string HelpFormatter::entry(const std::string& name, const std::string& description) const {
  std::string line = "  " + name;
  if (line.size() + 2 > kNameColumn) return line + "\n" + wrapped(description, kNameColumn, width_);
  std::string text = wrapped(description, kNameColumn, width_);
  return text.empty() ? line + "\n" : text.replace(0, line.size(), line);
}

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return CLI::Validator(
      [least, most](const std::string& text) -> std::string {
        std::uint64_t number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
        const bool fine = error == std::errc() && end == text.data() + text.size() && number >= least && number <= most;
        return fine ? "" : fmt::format("{} is not a whole number from {} to {}", text, least, most);
      },
      "");
}

CLI::Validator output_file() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        if (text.size() < 2 || text.front() != '-') return "";
        return fmt::format("{} is an option, not a file to write; name the file, or ./{} if it is called so", text,
                           text);
      },
      "");
}

CLI::Validator duration(double least_s, double most_s) {
  return CLI::Validator(
      [least_s, most_s](std::string& text) -> std::string {
        const auto seconds = read_duration(text, BareNumber::seconds);
        if (!seconds || *seconds < least_s || *seconds > most_s) {
          return fmt::format("{} is no time from {:.15g} s to {:.15g} s; write 5, 5s, 500ms, 2m or 1h", text, least_s,
                             most_s);
        }
        text = fmt::format("{}", *seconds);
        return "";
      },
      "");
}

std::string usage_sentence(const CLI::App& root, const CLI::ParseError& error) {
  for (const auto* command : root.get_subcommands()) {
    return command_sentence(*command, error, "stepscope " + command->get_name());
  }
  const auto left = root.remaining();
  if (left.empty()) return "no command given. See stepscope --help";
  if (left.front().starts_with('-')) return unknown("option", left.front(), option_names(root), "stepscope");
  if (exists(left.front())) return fmt::format("no command given. Did you mean stepscope report {}?", left.front());
  std::vector<std::string> names;
  for (const auto* command : root.get_subcommands({})) names.push_back(command->get_name());
  return unknown("command", left.front(), names, "stepscope");
}

}  // namespace stepscope::cli
