// NamePattern: what the user's tables of rules look for in names.
//
// A pattern is alternatives joined by " or ", each of which is terms joined by " and ", each of which is text to be
// found in the name, case-sensitively: "^text" at its start, "text$" at its end, "^text$" all of it, "not text"
// nowhere. A table may know terms of its own ("@memcpy"), which ask something else than the name.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace stepscope {

struct NameTerm {
  enum class How : std::uint8_t { contains, starts, ends, equals, own };
  How how = How::contains;
  bool negated = false;
  std::string text;  // of a term of the table's own: with its @
};

class NamePattern {
 public:
  // `own`: terms that the table knows beside text. The error says what is wrong, without a place.
  static Result<NamePattern> parse(std::string_view text, std::span<const std::string_view> own = {});

  // `asks(term)` answers terms of the table's own.
  template <class Asks>
  bool fits(std::string_view name, const Asks& asks) const {
    const auto holds = [&](const NameTerm& term) {
      return (term.how == NameTerm::How::own ? asks(term.text) : found(term, name)) != term.negated;
    };
    return std::any_of(alternatives_.begin(), alternatives_.end(),
                       [&](const auto& terms) { return std::all_of(terms.begin(), terms.end(), holds); });
  }
  bool fits(std::string_view name) const {
    return fits(name, [](std::string_view) { return false; });
  }

 private:
  static bool found(const NameTerm& term, std::string_view name);

  std::vector<std::vector<NameTerm>> alternatives_;
};

}  // namespace stepscope
