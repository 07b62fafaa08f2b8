#include "query/where_parser.h"

#include <algorithm>
#include <charconv>

namespace stepscope::query {

bool WordReader::is_keyword(std::string_view text, std::size_t ahead) const {
  return word(ahead).kind == WordKind::name && same_name(word(ahead).value, text);
}

bool WordReader::is_sign(std::string_view text, std::size_t ahead) const {
  return word(ahead).kind == WordKind::sign && word(ahead).value == text;
}

bool WordReader::is_name() const {
  return word().kind == WordKind::quoted_name || (word().kind == WordKind::name && !is_reserved(word().value));
}

std::optional<std::size_t> column_named(const ModelTable& table, std::string_view name) {
  const auto& columns = table.spec->columns;
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const auto& column) { return same_name(column.name, name); });
  if (found == columns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns.begin());
}

std::optional<std::size_t> take_column(WordReader& words, const ModelTable& table) {
  if (!words.is_name()) return std::nullopt;
  const auto found = column_named(table, words.word().value);
  if (found) words.go_to(words.at() + 1);
  return found;
}

namespace {

class WhereParser {
 public:
  WhereParser(WordReader& words, const ModelTable& table, std::vector<Predicate>& out)
      : words_(words), table_(table), out_(out) {}

  bool condition() {
    const auto left = take_column(words_, table_);
    if (!left) return false;
    Predicate predicate{*left, Compare::equal, {}};
    if (words_.keyword("is")) {
      predicate.compare = words_.keyword("not") ? Compare::not_null : Compare::is_null;
      return words_.keyword("null") && add(std::move(predicate));
    }
    if (words_.keyword("between")) return between(*left);
    const bool no = words_.keyword("not");
    if (words_.keyword("in")) {
      predicate.compare = no ? Compare::not_equal : Compare::equal;
      return list(predicate) && add(std::move(predicate));
    }
    if (no || !comparison(predicate.compare)) return false;
    return constant(predicate.constants.emplace_back()) && !words_.is_keyword("escape") && add(std::move(predicate));
  }

 private:
  bool comparison(Compare& compare) {
    static constexpr std::pair<std::string_view, Compare> signs[] = {
        {"=", Compare::equal},    {"==", Compare::equal}, {"!=", Compare::not_equal}, {"<>", Compare::not_equal},
        {"<=", Compare::at_most}, {"<", Compare::less},   {">=", Compare::at_least},  {">", Compare::more}};
    for (const auto& [text, meaning] : signs) {
      if (words_.sign(text)) return compare = meaning, true;
    }
    if (words_.keyword("like")) return compare = Compare::like, true;
    if (words_.keyword("glob")) return compare = Compare::glob, true;
    return false;
  }

  bool between(std::size_t left) {
    Predicate low{left, Compare::at_least, {}}, high{left, Compare::at_most, {}};
    return constant(low.constants.emplace_back()) && words_.keyword("and") && constant(high.constants.emplace_back()) &&
           add(std::move(low)) && add(std::move(high));
  }

  bool list(Predicate& predicate) {
    if (!words_.sign("(")) return false;
    do {
      if (!constant(predicate.constants.emplace_back())) return false;
    } while (words_.sign(","));
    return words_.sign(")");
  }

  bool constant(Constant& out) {
    const bool negative = words_.sign("-");
    const Word& literal = words_.word();
    if (literal.kind == WordKind::text && !negative) {
      out = literal.value;
    } else {
      const bool whole = literal.kind == WordKind::whole;
      if (!whole && literal.kind != WordKind::real) return false;
      if (!number((negative ? "-" : "") + literal.value, whole, out)) return false;
    }
    words_.go_to(words_.at() + 1);
    return true;
  }

  static bool number(const std::string& text, bool whole, Constant& out) {
    const auto parse = [&](auto value) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      out = value;
      return error == std::errc() && end == text.data() + text.size();
    };
    if (!whole) return parse(double{});
    return parse(std::int64_t{}) && std::get<std::int64_t>(out) != INT64_MIN;
  }

  bool add(Predicate predicate) {
    if (!supported(tables::value_type(table_.spec->columns[predicate.column]), predicate)) return false;
    out_.push_back(std::move(predicate));
    return true;
  }

  WordReader& words_;
  const ModelTable& table_;
  std::vector<Predicate>& out_;
};

}  // namespace

bool take_where(WordReader& words, const ModelTable& table, std::vector<Predicate>& out) {
  if (!words.keyword("where")) return true;
  WhereParser parser(words, table, out);
  do {
    if (!parser.condition()) return false;
  } while (words.keyword("and"));
  return true;
}

}  // namespace stepscope::query
