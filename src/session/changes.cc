#include "session/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/duration.h"
#include "base/shell_word.h"
#include "base/text_parts.h"

namespace stepscope::session {
namespace {

// What stands after the name of an option.
enum class Takes : std::uint8_t { nothing, target, target_and_factor, target_and_time, factor, whole_number };

struct Option {
  std::string_view name;
  ChangeKind kind;
  Takes takes;
  std::string_view example;  // of its value
};

// In the order in which changes work.
constexpr std::array<Option, 10> kOptions{{
    {"scale", ChangeKind::scale, Takes::target_and_factor, "kernel:gemm=0.5"},
    {"remove", ChangeKind::scale, Takes::target, "op:aten::sort"},
    {"move", ChangeKind::set_duration, Takes::target_and_time, "op:aten::topk=120us"},
    {"fuse", ChangeKind::fuse, Takes::target, "kernel:elementwise"},
    {"dataloader", ChangeKind::data_loader, Takes::factor, "0"},
    {"no-waits", ChangeKind::no_waits, Takes::nothing, ""},
    {"level-rank", ChangeKind::level_rank, Takes::whole_number, "3"},
    {"bandwidth", ChangeKind::bandwidth, Takes::factor, "2"},
    {"ranks", ChangeKind::ranks, Takes::whole_number, "64"},
    {"overlap-comm", ChangeKind::overlap, Takes::nothing, ""},
}};

// Who reads the hint says how an option is written: see written().
Error usage(std::string message, const Option& option) {
  std::string example = fmt::format("{}{}{}", option.name, option.example.empty() ? "" : " ", option.example);
  return {ErrorKind::usage, std::move(message), "", std::nullopt, std::move(example)};
}

Error not_an_option(std::string_view name) {
  std::string names;
  for (const Option& option : kOptions) names += (names.empty() ? "" : ", ") + std::string(option.name);
  return {ErrorKind::usage, fmt::format("'{}' is no change", name), "", std::nullopt, "Changes are: " + names};
}

std::string_view name_of(const Change& change) {
  if (change.kind == ChangeKind::scale && change.value == 0) return "remove";
  return std::find_if(kOptions.begin(), kOptions.end(), [&](const Option& one) { return one.kind == change.kind; })
      ->name;
}

// "TARGET=VALUE"; the name may have a = in it, the value has none.
Result<std::pair<std::string_view, std::string_view>> parted(std::string_view text, const Option& option) {
  const std::size_t at = text.rfind('=');
  if (at == text.npos || at == 0 || at + 1 == text.size()) {
    return fail(usage(fmt::format("'{}' is not TARGET=VALUE", text), option));
  }
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

Result<double> number(std::string_view text, const Option& option) {
  const auto value = number_in<double>(text);
  if (!value) return fail(usage(fmt::format("'{}' is no number", text), option));
  return *value;
}

Result<Change> read_value(const Option& option, std::string_view value) {
  Change change{.kind = option.kind};
  switch (option.takes) {
    case Takes::nothing: return change;
    case Takes::target:
      change.target = value;
      if (option.kind == ChangeKind::scale) change.value = 0;
      return change;
    case Takes::target_and_factor:
    case Takes::target_and_time: {
      const auto parts = parted(value, option);
      if (!parts) return fail(parts.error());
      change.target = parts->first;
      if (option.takes == Takes::target_and_time) {
        const auto seconds = read_duration(parts->second, BareNumber::refused);
        if (!seconds) {
          return fail(usage(fmt::format("'{}' is no duration with its unit", parts->second), option));
        }
        change.value = *seconds * 1e9;
        return change;
      }
      const Result<double> factor = number(parts->second, option);
      if (!factor) return fail(factor.error());
      change.value = *factor;
      return change;
    }
    case Takes::factor: {
      const Result<double> factor = number(value, option);
      if (!factor) return fail(factor.error());
      change.value = *factor;
      return change;
    }
    case Takes::whole_number: {
      const auto whole = number_in<std::int64_t>(value);
      if (!whole) return fail(usage(fmt::format("'{}' is no whole number", value), option));
      if (option.kind == ChangeKind::level_rank) {
        change.rank = whole;
      } else {
        change.value = static_cast<double>(*whole);
      }
      return change;
    }
  }
  return fail(not_an_option(option.name));
}

Result<Change> read_option(const Option& option, std::string_view value) {
  const bool wants = option.takes != Takes::nothing;
  if (wants && value.empty()) {
    return fail(usage(fmt::format("'{}' does not say of what, or how much", option.name), option));
  }
  if (!wants && !value.empty()) return fail(usage(fmt::format("'{}' takes no value", option.name), option));
  return read_value(option, value);
}

// With what to write instead as the hint of a fault.
Result<Change> written(std::string_view name, std::string_view value, std::string_view lead) {
  const auto* option =
      std::find_if(kOptions.begin(), kOptions.end(), [&](const Option& one) { return one.name == name; });
  if (option == kOptions.end()) return fail(not_an_option(name));
  Result<Change> change = read_option(*option, value);
  if (change) return change;
  Error error = change.error();
  error.hint = std::string(lead) + error.hint;
  return fail(std::move(error));
}

}  // namespace

std::string change_text(const Change& change) {
  const std::string_view name = name_of(change);
  switch (change.kind) {
    case ChangeKind::scale:
      return change.value == 0 ? fmt::format("{} {}", name, change.target)
                               : fmt::format("{} {}={:g}", name, change.target, change.value);
    case ChangeKind::set_duration: return fmt::format("{} {}={:g}us", name, change.target, change.value / 1000);
    case ChangeKind::data_loader:
    case ChangeKind::bandwidth: return fmt::format("{} {:g}", name, change.value);
    case ChangeKind::ranks:
      return fmt::format("{} {:g}", name, change.value) +
             (change.network.name.empty() ? "" : " --topology " + shell_word(change.network.name));
    case ChangeKind::fuse: return fmt::format("{} {}", name, change.target);
    case ChangeKind::level_rank: return fmt::format("{} {}", name, change.rank.value_or(0));
    case ChangeKind::overlap:
    case ChangeKind::no_waits: return std::string(name);
  }
  return "";
}

Result<Change> read_change(std::string_view name, std::string_view value) { return written(name, value, "Write --"); }

namespace {

// As the documents have it for a shell.
std::string_view without_quotes(std::string_view value) {
  const bool quoted =
      value.size() > 1 && value.front() == value.back() && (value.front() == '\'' || value.front() == '"');
  return quoted ? value.substr(1, value.size() - 2) : value;
}

// Its file is of the machine on which the command runs.
constexpr std::string_view kTopology = "topology";
Error no_topology() {
  return {ErrorKind::usage, "a topology is a file, which is taken on the command line alone", "", std::nullopt,
          "Write ranks 64 without it, or run stepscope what-if PATH --ranks 64 --topology network.yml"};
}

}  // namespace

Result<std::vector<Change>> read_changes(std::string_view lines) {
  std::vector<Change> changes;
  for (std::string_view line : split(lines, "\n")) {
    if (line.starts_with("--")) line.remove_prefix(2);
    if (line.empty()) continue;
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string_view name = line.substr(0, blank), value = without_quotes(trimmed(line.substr(blank)));
    if (name == kTopology || (name == "ranks" && value.find("--topology") != value.npos)) return fail(no_topology());
    Result<Change> change = written(name, value, "Write ");
    if (!change) return fail(change.error());
    changes.push_back(*std::move(change));
  }
  put_in_order(changes);
  return changes;
}

void put_in_order(std::vector<Change>& changes) {
  const auto place = [](const Change& change) {
    return std::find_if(kOptions.begin(), kOptions.end(),
                        [name = name_of(change)](const Option& one) { return one.name == name; });
  };
  std::stable_sort(changes.begin(), changes.end(),
                   [&](const Change& a, const Change& b) { return place(a) < place(b); });
}

}  // namespace stepscope::session
