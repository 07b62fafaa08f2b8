// Finds and reads the file of settings. The only source that includes toml11, which is heavy and throws; what it throws
// ends here. Versions 3.7 (Ubuntu 22.04) to 4 name some things differently: see line_of and sentence_of.
#include "collect/settings_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <toml.hpp>

#include "collect/capture.h"

namespace stepscope::collect {
namespace fs = std::filesystem;
namespace {

constexpr std::uintmax_t kLargest = 1 << 20;
constexpr int kDeepest = 100;  // of what lies within each other: toml11 calls itself for each level

Error broken(const std::string& where, const std::string& message, const std::string& hint) {
  return {ErrorKind::usage, message, where, {}, hint};
}

template <class Value>
std::size_t line_of(const Value& value) {
  const auto location = value.location();
  if constexpr (requires { location.line(); }) {
    return static_cast<std::size_t>(location.line());
  } else {
    return static_cast<std::size_t>(location.first_line_number());
  }
}

// "[error] toml::parse_table: what is wrong\n --> FILE\n …3 | the line": the place is taken from the picture of it.
struct Complaint {
  std::string sentence;
  std::string line;  // empty: not said
};

Complaint complaint_of(const std::string& what) {
  Complaint out;
  std::istringstream lines(what);
  std::getline(lines, out.sentence);
  if (const std::size_t at = out.sentence.find("[error] "); at != std::string::npos) out.sentence.erase(0, at + 8);
  if (out.sentence.starts_with("toml::")) {
    if (const std::size_t at = out.sentence.find(": "); at != std::string::npos) out.sentence.erase(0, at + 2);
  }
  for (std::string text; out.line.empty() && std::getline(lines, text);) {
    const std::size_t first = text.find_first_not_of(' ');
    const std::size_t end = text.find_first_not_of("0123456789", first);
    if (first == std::string::npos || end == first || end == std::string::npos) continue;
    if (text.find_first_not_of(' ', end) == text.find('|')) out.line = text.substr(first, end - first);
  }
  while (!out.sentence.empty() && (out.sentence.back() == '.' || out.sentence.back() == ' ')) out.sentence.pop_back();
  return out;
}

// Nothing of a list or a table within it: "" where the value is neither text, number nor true or false.
std::string text_of_one(const toml::value& value) {
  if (value.is_string()) return toml::get<std::string>(value);
  if (value.is_integer()) return std::to_string(toml::get<std::int64_t>(value));
  if (value.is_boolean()) return toml::get<bool>(value) ? "true" : "false";
  if (!value.is_floating()) return "";
  char text[400];
  const auto [end, error] = std::to_chars(text, text + sizeof text, toml::get<double>(value), std::chars_format::fixed);
  return error == std::errc() ? std::string(text, end) : "";
}

std::string text_of(const toml::value& value) {
  std::string out;
  if (value.is_array()) {
    for (const toml::value& item : value.as_array()) out += (out.empty() ? "" : ",") + text_of_one(item);
  } else if (value.is_table()) {
    for (const auto& [key, item] : value.as_table()) {
      out += (out.empty() ? "" : ",") + key + "=" + text_of_one(item);
    }
  } else {
    out = text_of_one(value);
  }
  return out;
}

std::string option_name(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

void take_settings(const toml::value& table, SettingsFile& out) {
  std::vector<std::pair<std::size_t, FileSetting>> found;  // toml11 keeps no order
  for (const auto& [key, value] : table.as_table()) {
    const std::size_t line = line_of(value);
    found.push_back({line, {option_name(key), text_of(value), out.shown + ":" + std::to_string(line)}});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [line, setting] : found) out.settings.push_back(std::move(setting));
}

// Where the text behind the string goes on that opens at `at`; at the line's end where it is not closed.
std::size_t behind_string(const std::string& text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool is_long = text.compare(at, 3, three) == 0;
  for (at += is_long ? 3 : 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (is_long ? text.compare(at, 3, three) == 0 : text[at] == quote || text[at] == '\n') {
      const std::size_t end = text.find_first_not_of(quote, at);  // """" closes too, one quote earlier
      return is_long ? std::min(end, text.size()) : at + 1;
    }
  }
  return at;
}

// More brackets or parts of a key within each other than any file of settings has.
bool too_deep(const std::string& text) {
  int depth = 0, parts = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"' || c == '\'') at = behind_string(text, at) - 1;
    if (c == '#') at = std::min(text.find('\n', at), text.size()) - 1;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') depth = std::max(depth - 1, 0);
    parts = c == '.' ? parts + 1 : std::string_view("=,[]{}\n").find(c) != std::string_view::npos ? 0 : parts;
    if (depth > kDeepest || parts > kDeepest) return true;
  }
  return false;
}

// False: a pyproject.toml that has nothing to say.
Result<bool> read_file(const std::string& path, SettingsFile& out, bool is_pyproject) {
  std::error_code code;
  if (const auto size = fs::file_size(path, code); !code && size > kLargest)
    return fail(broken(out.shown, "larger than 1 MiB: this is no file of settings", ""));
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  if (!file.is_open() || content.bad()) {
    return fail(broken(out.shown, "the settings cannot be read", "Name another with STEPSCOPE_CONFIG=FILE, or off"));
  }
  if (is_pyproject && text.find("stepscope") == std::string::npos) return false;  // its faults are not ours
  if (too_deep(text)) return fail(broken(out.shown, "tables or lists lie too deep within each other", ""));
  try {
    std::istringstream stream(text);
    const toml::value all = toml::parse(stream, out.shown);
    if (!is_pyproject) {
      take_settings(all, out);
      return true;
    }
    if (!all.contains("tool") || !all.at("tool").is_table() || !all.at("tool").contains("stepscope")) return false;
    const toml::value& own = all.at("tool").at("stepscope");
    if (!own.is_table()) return fail(broken(out.shown, "tool.stepscope is no table", "Write [tool.stepscope]"));
    take_settings(own, out);
    return true;
  } catch (const std::exception& error) {
    const Complaint complaint = complaint_of(error.what());
    const std::string where = complaint.line.empty() ? out.shown : out.shown + ":" + complaint.line;
    return fail(broken(where, "no TOML: " + shown(complaint.sentence), "Correct that line"));
  }
}

bool is_file(const fs::path& path) {
  std::error_code code;
  return fs::is_regular_file(path, code);
}

Result<SettingsFile> read_named(const std::string& folder, const std::string& named) {
  SettingsFile out;
  out.shown = named;
  const fs::path path = fs::path(folder) / named;  // `named` alone where it is absolute
  if (!is_file(path)) return fail(broken(named, "there is no such file of settings", "Check STEPSCOPE_CONFIG"));
  const auto read = read_file(path.string(), out, path.filename() == "pyproject.toml");
  if (!read) return fail(read.error());
  if (!*read) return fail(broken(named, "it has no [tool.stepscope]", "Add it, or name another file"));
  out.path = path.string();
  return out;
}

}  // namespace

Result<SettingsFile> read_settings_file(const std::string& folder, const std::string& named) {
  if (named == "off") return SettingsFile{};
  if (!named.empty()) return read_named(folder, named);
  for (fs::path at = folder; at.has_root_path(); at = at.parent_path()) {
    for (const char* name : {"stepscope.toml", "pyproject.toml"}) {
      const fs::path path = at / name;
      if (!is_file(path)) continue;
      SettingsFile out;
      out.shown = at == folder ? name : path.string();
      const auto read = read_file(path.string(), out, std::string_view(name) == "pyproject.toml");
      if (!read) return fail(read.error());
      if (!*read) continue;
      out.path = path.string();
      return out;
    }
    if (!at.has_relative_path()) break;
  }
  return SettingsFile{};
}

}  // namespace stepscope::collect
