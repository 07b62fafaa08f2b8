#include "derive/class_rules.h"

#include <array>
#include <optional>

#include "base/table_file.h"

namespace stepscope::derive {
namespace {

std::optional<DeviceClass> class_named(std::string_view name) {
  for (std::size_t i = 0; i < kDeviceClasses; i++)
    if (to_string(static_cast<DeviceClass>(i)) == name) return static_cast<DeviceClass>(i);
  return std::nullopt;
}

const TableFormat kFormat{{"name", "class", "family", "pattern", "reason"},
                          "write NAME | CLASS | FAMILY | PATTERN | WHY on one line (docs/class-rules.md)"};
constexpr std::array<std::string_view, 3> kOwnTerms{"@memcpy", "@memset", "@collective"};

bool asks(std::string_view term, const WorkName& work) {
  if (term == "@memcpy") return work.kind == SliceKind::memcpy;
  if (term == "@memset") return work.kind == SliceKind::memset;
  return work.collective;
}

Result<void> refuse(std::string message, std::string hint) {
  return fail({ErrorKind::malformed, std::move(message), "", std::nullopt, std::move(hint)});
}

}  // namespace

RuleTable::RuleTable() {
  rules_.push_back({"none", "", "", DeviceClass::unclassified, "no rule knows this name"});
  patterns_.emplace_back();
}

Result<void> RuleTable::add(std::string_view text, const std::string& file) {
  const std::size_t first_own = rules_.size();
  return for_each_row(text, file, kFormat,
                      [&](std::span<const std::string_view> row) { return add_row(row, first_own); });
}

Result<void> RuleTable::add_row(std::span<const std::string_view> row, std::size_t first_own) {
  const std::optional<DeviceClass> device_class = class_named(row[1]);
  if (!device_class) {
    return refuse("unknown class '" + std::string(row[1]) + "'",
                  "use compute, communication, memory copy, memory set or unclassified");
  }
  for (std::size_t i = first_own; i < rules_.size(); i++) {
    if (rules_[i].name == row[0]) {
      return refuse("a second rule is named '" + std::string(row[0]) + "'", "give every rule its own name");
    }
  }
  Result<NamePattern> pattern = NamePattern::parse(row[3], kOwnTerms);
  if (!pattern) return fail(pattern.error());
  constexpr std::size_t kMost = 10000;  // names must stay distinct without a search that grows too large
  if (rules_.size() - first_own >= kMost) return refuse("more than 10000 rules", "merge rules with ' or '");
  rules_.push_back({std::string(row[0]), std::string(row[3]), std::string(row[2]), *device_class, std::string(row[4])});
  patterns_.push_back(*std::move(pattern));
  return {};
}

std::uint16_t RuleTable::match(const WorkName& work) const {
  for (std::size_t rule = 1; rule < patterns_.size(); rule++) {
    if (patterns_[rule].fits(work.name, [&](std::string_view term) { return asks(term, work); }))
      return static_cast<std::uint16_t>(rule);
  }
  return 0;
}

Result<RuleTable> load_rules(const std::string& users_path) {
  RuleTable table;
  if (!users_path.empty()) {
    const Result<std::string> text = read_table(users_path, "class rules", "docs/class-rules.md");
    if (!text) return fail(text.error());
    if (Result<void> added = table.add(*text, users_path); !added) return fail(added.error());
  }
  if (Result<void> added = table.add(built_in_rules(), ""); !added) return fail(added.error());
  return table;
}

}  // namespace stepscope::derive
