// Gates: what `--fail-on` says, and names of rows.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "base/did_you_mean.h"
#include "base/text_parts.h"
#include "diff/diff.h"

namespace stepscope::diff {
namespace {

constexpr std::array<std::string_view, 5> kTables{"phase", "module", "operator", "kernel", "collective"};

Error bad_gate(std::string_view text) {
  return {.kind = ErrorKind::usage,
          .message = "cannot read the gate '" + std::string(text) + "'",
          .hint = "write 'step>3%', 'step>2ms', 'phase:forward>5%' or 'kernel:gemm>0.5ms'"};
}

}  // namespace

std::span<const std::string_view> level_names() { return kTables; }

Result<Gate> parse_gate(std::string_view text) {
  Gate gate{.text = std::string(text)};
  const std::size_t sign = text.rfind('>');
  if (sign == std::string_view::npos) return fail(bad_gate(text));
  const std::string_view what = trimmed(text.substr(0, sign));
  const std::string limit(trimmed(text.substr(sign + 1)));
  const std::size_t colon = what.find(':');
  gate.level = std::string(trimmed(what.substr(0, colon)));
  if (colon != std::string_view::npos) gate.name = std::string(trimmed(what.substr(colon + 1)));
  const bool is_table = std::find(kTables.begin(), kTables.end(), gate.level) != kTables.end();
  if (!is_table && gate.level != "step") {
    std::vector<std::string_view> names(kTables.begin(), kTables.end());
    names.insert(names.begin(), "step");
    return fail(unknown_name("row of a gate", gate.level, names));
  }
  if (is_table == gate.name.empty()) return fail(bad_gate(text));
  char* end = nullptr;
  const double number = std::strtod(limit.c_str(), &end);
  const std::string_view unit = trimmed(end);
  if (end == limit.c_str() || !(number >= 0)) return fail(bad_gate(text));
  static constexpr std::array<std::pair<std::string_view, double>, 4> kTimes{
      {{"ns", 1.0}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  gate.relative = unit == "%";
  gate.limit = number / 100;
  if (gate.relative) return gate;
  for (const auto& [name, ns] : kTimes) {
    if (unit != name) continue;
    gate.limit = number * ns;
    return gate;
  }
  return fail(bad_gate(text));
}

}  // namespace stepscope::diff
