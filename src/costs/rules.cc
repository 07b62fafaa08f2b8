#include "costs/rules.h"

#include <algorithm>
#include <charconv>
#include <span>

#include "base/table_file.h"
#include "base/text_parts.h"

namespace stepscope::costs {
namespace {

const TableFormat kFormat{{"name", "pattern", "formula", "formula for backward", "list of hints", "reason"},
                          "write NAME | PATTERN | FLOP | BACKWARD | HINTS | WHY on one line, and - for what there is "
                          "not (docs/flop-rules.md)"};

tl::unexpected<Error> refuse(std::string message, std::string hint = "") {
  return fail({ErrorKind::malformed, std::move(message), "", std::nullopt, std::move(hint)});
}

bool whole(std::string_view text, std::int64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 0;
}

// "type 1": the number behind the word.
std::optional<std::size_t> numbered(std::string_view hint, std::string_view word) {
  std::int64_t number = 0;
  if (!hint.starts_with(word) || !whole(trimmed(hint.substr(word.size())), number)) return std::nullopt;
  return static_cast<std::size_t>(number);
}

template <class Target>
Result<void> set(Target& target, std::string_view text) {
  Result<Expression> parsed = Expression::parse(text);
  if (!parsed) return fail(parsed.error());
  target = *std::move(parsed);
  return {};
}

Result<void> add_hint(std::string_view hint, FlopRule& rule) {
  if (hint == "unless below") {
    rule.unless_below = true;
  } else if (const auto operand = numbered(hint, "type d")) {
    rule.operand = *operand;
  } else if (const auto causal = numbered(hint, "causal c")) {
    rule.causal = causal;
  } else if (hint.starts_with("bytes ")) {
    return set(rule.bytes, hint.substr(6));
  } else {
    return refuse("unknown hint '" + std::string(hint) + "'",
                  "use type d1, causal c5, bytes FORMULA, unless below, or several with ; between them");
  }
  return {};
}

}  // namespace

Result<void> FlopRules::add(std::string_view text, const std::string& file) {
  const std::size_t first_own = rules_.size();
  return for_each_row(text, file, kFormat,
                      [&](std::span<const std::string_view> row) { return add_row(row, first_own); });
}

Result<void> FlopRules::add_row(std::span<const std::string_view> row, std::size_t first_own) {
  constexpr std::size_t kMost = 10000;
  if (rules_.size() - first_own >= kMost) return refuse("more than 10000 rules", "merge rules with ' or '");
  FlopRule rule{.name = std::string(row[0]), .why = std::string(row[5])};
  for (std::size_t i = first_own; i < rules_.size(); i++) {
    if (rules_[i].name == row[0])
      return refuse("a second rule is named '" + rule.name + "'", "give every rule its own name");
  }
  Result<NamePattern> pattern = NamePattern::parse(row[1]);
  if (!pattern) return fail(pattern.error());
  rule.pattern = *std::move(pattern);
  if (row[2].find("forward") != row[2].npos)
    return refuse("FLOP asks for forward", "forward is what FLOP comes to, and stands in BACKWARD only");
  if (Result<void> done = set(rule.flop, row[2]); !done) return done;
  if (row[3] != "-") {
    if (Result<void> done = set(rule.backward, row[3]); !done) return done;
  }
  if (row[4] != "-") {
    for (const std::string_view hint : split(row[4], ";")) {
      if (Result<void> done = add_hint(hint, rule); !done) return done;
    }
  }
  rules_.push_back(std::move(rule));
  return {};
}

const FlopRule* FlopRules::match(std::string_view op) const {
  const auto found = std::find_if(rules_.begin(), rules_.end(), [&](const FlopRule& r) { return r.pattern.fits(op); });
  return found == rules_.end() ? nullptr : &*found;
}

std::optional<SaidWork> said_work(std::string_view range) {
  const std::size_t open = range.rfind(" [flop=");
  if (open == range.npos || !range.ends_with(']')) return std::nullopt;
  SaidWork said{.name = range.substr(0, open)};
  for (const std::string_view part : split(range.substr(open + 2, range.size() - open - 3), " ")) {
    const std::size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, equals);
    const std::string_view text = part.substr(std::min(equals + 1, part.size()));
    std::int64_t number = 0;
    const bool counted = whole(text, number) && number <= std::int64_t{1} << 60;
    if (name == "type") {
      said.type = text;
    } else if (name == "flop" && counted) {
      said.flop = number;
    } else if (name == "backward_flop" && counted) {
      said.backward_flop = number;
    } else if (name == "bytes" && counted) {
      said.bytes = number;
    } else {
      return std::nullopt;
    }
  }
  return said;
}

}  // namespace stepscope::costs
