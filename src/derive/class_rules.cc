#include "derive/class_rules.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "base/text_parts.h"

namespace stepscope::derive {
namespace {

std::optional<DeviceClass> class_named(std::string_view name) {
  for (std::size_t i = 0; i < kDeviceClasses; i++)
    if (to_string(static_cast<DeviceClass>(i)) == name) return static_cast<DeviceClass>(i);
  return std::nullopt;
}

Error line_error(const std::string& file, std::size_t line, std::string message, std::string hint) {
  Error error;
  error.kind = file.empty() ? ErrorKind::internal : ErrorKind::malformed;
  error.message = "line " + std::to_string(line) + ": " + std::move(message);
  error.file = file;
  error.hint = std::move(hint);
  return error;
}

constexpr std::string_view kHint = "write NAME | CLASS | FAMILY | PATTERN | WHY on one line (docs/class-rules.md)";

// A term, or what is wrong with it.
Result<Term> parse_term(std::string_view text) {
  Term term;
  if (text.starts_with("not ")) {
    term.negated = true;
    text = trimmed(text.substr(4));
  }
  if (text.starts_with('@')) {
    if (text != "@memcpy" && text != "@memset" && text != "@collective") {
      Error error;
      error.message = "unknown term '" + std::string(text) + "'";
      error.hint = "use @memcpy, @memset or @collective";
      return fail(error);
    }
    term.how = text == "@memcpy" ? Term::How::memcpy : text == "@memset" ? Term::How::memset : Term::How::collective;
    return term;
  }
  if (text.starts_with('^')) {
    term.how = text.ends_with('$') ? Term::How::equals : Term::How::starts;
    text.remove_prefix(1);
    if (term.how == Term::How::equals) text.remove_suffix(1);
  } else if (text.ends_with('$')) {
    term.how = Term::How::ends;
    text.remove_suffix(1);
  }
  if (text.empty()) {
    Error error;
    error.message = "an empty term in the pattern";
    error.hint = std::string(kHint);
    return fail(error);
  }
  term.text = text;
  return term;
}

bool fits(const Term& term, const WorkName& work) {
  switch (term.how) {
    case Term::How::contains: return work.name.find(term.text) != std::string_view::npos;
    case Term::How::starts: return work.name.starts_with(term.text);
    case Term::How::ends: return work.name.ends_with(term.text);
    case Term::How::equals: return work.name == term.text;
    case Term::How::memcpy: return work.kind == SliceKind::memcpy;
    case Term::How::memset: return work.kind == SliceKind::memset;
    case Term::How::collective: return work.collective;
  }
  return false;
}

Result<std::string> read_text(const std::string& path) {
  constexpr std::uintmax_t kLargest = 4u << 20;
  std::error_code code;
  const std::uintmax_t size = std::filesystem::file_size(path, code);
  Error error;
  error.file = path;
  error.hint = "name a text file of class rules (docs/class-rules.md)";
  error.kind = code == std::errc::no_such_file_or_directory ? ErrorKind::not_found : ErrorKind::unreadable;
  error.message = "the class rules cannot be read: " + code.message();
  if (code) return fail(error);
  error.kind = ErrorKind::too_large;
  error.message = "the class rules are larger than 4 MiB";
  if (size > kLargest) return fail(error);
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (size > 0) text << in.rdbuf();
  error.kind = ErrorKind::unreadable;
  error.message = "the class rules cannot be read: " + std::string(std::strerror(errno));
  if (!in) return fail(error);
  return std::move(text).str();
}

}  // namespace

RuleTable::RuleTable() {
  rules_.push_back({"none", "", "", DeviceClass::unclassified, "no rule knows this name"});
  patterns_.emplace_back();
}

Result<RuleTable::Pattern> RuleTable::parse_pattern(std::string_view text) const {
  Pattern pattern;
  for (const std::string_view alternative : split(text, " or ")) {
    std::vector<Term>& terms = pattern.emplace_back();
    for (const std::string_view part : split(alternative, " and ")) {
      Result<Term> term = parse_term(part);
      if (!term) return fail(term.error());
      terms.push_back(*std::move(term));
    }
  }
  return pattern;
}

Result<void> RuleTable::add(std::string_view text, const std::string& file) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const std::size_t first_own = rules_.size();
  std::size_t number = 0;
  for (const std::string_view line : split(text, "\n")) {
    number++;
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string_view> fields = split(line, "|");
    if (fields.size() != 5)
      return fail(
          line_error(file, number, "expected 5 fields, found " + std::to_string(fields.size()), std::string(kHint)));
    constexpr std::array<std::string_view, 5> kFields{"name", "class", "family", "pattern", "reason"};
    for (std::size_t i = 0; i < fields.size(); i++)
      if (fields[i].empty())
        return fail(line_error(file, number, "the " + std::string(kFields[i]) + " is empty", std::string(kHint)));
    const std::optional<DeviceClass> device_class = class_named(fields[1]);
    if (!device_class)
      return fail(line_error(file, number, "unknown class '" + std::string(fields[1]) + "'",
                             "use compute, communication, memory copy, memory set or unclassified"));
    for (std::size_t i = first_own; i < rules_.size(); i++)
      if (rules_[i].name == fields[0])
        return fail(line_error(file, number, "a second rule is named '" + std::string(fields[0]) + "'",
                               "give every rule its own name"));
    Result<Pattern> pattern = parse_pattern(fields[3]);
    if (!pattern) return fail(line_error(file, number, pattern.error().message, pattern.error().hint));
    constexpr std::size_t kMost = 10000;  // names must stay distinct without a search that grows too large
    if (rules_.size() - first_own >= kMost)
      return fail(line_error(file, number, "more than 10000 rules", "merge rules with ' or '"));
    rules_.push_back({std::string(fields[0]), std::string(fields[3]), std::string(fields[2]), *device_class,
                      std::string(fields[4])});
    patterns_.push_back(*std::move(pattern));
  }
  return {};
}

std::uint16_t RuleTable::match(const WorkName& work) const {
  for (std::size_t rule = 1; rule < patterns_.size(); rule++)
    for (const std::vector<Term>& terms : patterns_[rule])
      if (std::all_of(terms.begin(), terms.end(), [&](const Term& t) { return fits(t, work) != t.negated; }))
        return static_cast<std::uint16_t>(rule);
  return 0;
}

Result<RuleTable> load_rules(const std::string& users_path) {
  RuleTable table;
  if (!users_path.empty()) {
    const Result<std::string> text = read_text(users_path);
    if (!text) return fail(text.error());
    if (Result<void> added = table.add(*text, users_path); !added) return fail(added.error());
  }
  if (Result<void> added = table.add(built_in_rules(), ""); !added) return fail(added.error());
  return table;
}

}  // namespace stepscope::derive
