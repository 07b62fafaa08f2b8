#include "query/simple_select.h"

#include <algorithm>
#include <charconv>

#include "query/sql_words.h"

namespace stepscope::query {
namespace {

struct AggregateName {
  std::string_view name;
  Aggregate aggregate;
};
constexpr AggregateName kAggregates[] = {{"count", Aggregate::count}, {"sum", Aggregate::sum},
                                         {"total", Aggregate::total}, {"avg", Aggregate::avg},
                                         {"min", Aggregate::min},     {"max", Aggregate::max}};

// Each method takes what it is named after, or says false: then the statement is SQLite's.
class Parser {
 public:
  explicit Parser(std::vector<Word> words) : words_(std::move(words)) {}

  std::optional<SimpleSelect> parse() {
    if (!keyword("select")) return std::nullopt;
    const std::size_t items_at = at_;
    if (!find_table()) return std::nullopt;
    const std::size_t after_table = at_;
    at_ = items_at;
    if (!items()) return std::nullopt;
    at_ = after_table;
    const bool taken = where() && group() && order() && limit();
    sign(";");
    if (!taken || words_[at_].kind != WordKind::end || !plain_columns_are_grouped()) return std::nullopt;
    return std::move(select_);
  }

 private:
  const Word& word(std::size_t ahead = 0) const { return words_[std::min(at_ + ahead, words_.size() - 1)]; }
  bool is_keyword(std::string_view text, std::size_t ahead = 0) const {
    return word(ahead).kind == WordKind::name && same_name(word(ahead).value, text);
  }
  bool keyword(std::string_view text) { return is_keyword(text) && ++at_; }
  bool sign(std::string_view text) { return word().kind == WordKind::sign && word().value == text && ++at_; }
  bool is_name() const {
    return word().kind == WordKind::quoted_name || (word().kind == WordKind::name && !is_reserved(word().value));
  }

  std::optional<std::size_t> column_named(std::string_view name) const {
    const auto& columns = select_.table->spec->columns;
    const auto found =
        std::find_if(columns.begin(), columns.end(), [&](const auto& c) { return same_name(c.name, name); });
    if (found == columns.end()) return std::nullopt;
    return static_cast<std::size_t>(found - columns.begin());
  }
  std::optional<std::size_t> column() {
    if (!is_name()) return std::nullopt;
    const auto found = column_named(word().value);
    if (found) at_++;
    return found;
  }
  ValueType type(std::size_t column) const { return tables::value_type(select_.table->spec->columns[column]); }

  bool find_table() {
    while (!is_keyword("from")) {
      if (word().kind == WordKind::end) return false;
      at_++;
    }
    at_++;
    if (!is_name()) return false;
    select_.table = model_table(word().value);
    at_++;
    return select_.table != nullptr;
  }

  bool items() {
    do {
      const std::size_t begin = at_;
      SelectItem item;
      if (!expression(item)) return false;
      const Word& last = words_[at_ - 1];
      const char* from = words_[begin].raw.data();
      item.name = item.aggregate == Aggregate::none
                      ? std::string(select_.table->spec->columns[item.column].name)
                      : std::string(from, static_cast<std::size_t>(last.raw.data() + last.raw.size() - from));
      if (!alias(item)) return false;
      select_.items.push_back(std::move(item));
    } while (sign(","));
    return is_keyword("from");
  }

  // A name that is also that of a column could mean either later on.
  bool alias(SelectItem& item) {
    const bool as = keyword("as");
    if (!is_name()) return !as;
    if (column_named(word().value)) return false;
    item.name = item.alias = word().value;
    at_++;
    return true;
  }

  bool expression(SelectItem& item) {
    for (const AggregateName& known : kAggregates) {
      if (!is_keyword(known.name) || word(1).value != "(" || word(1).kind != WordKind::sign) continue;
      at_ += 2;
      item.aggregate = known.aggregate;
      if (known.aggregate == Aggregate::count && sign("*")) {
        item.aggregate = Aggregate::count_rows;
        return sign(")");
      }
      return argument(item) && sign(")");
    }
    const auto found = column();
    if (found) item.column = *found;
    return found.has_value();
  }

  // Texts have no sum here: SQLite would read numbers in them.
  bool argument(SelectItem& item) {
    const auto found = column();
    if (!found) return false;
    item.column = *found;
    const bool any =
        item.aggregate == Aggregate::count || item.aggregate == Aggregate::min || item.aggregate == Aggregate::max;
    return any || type(*found) != ValueType::text;
  }

  bool constant(Constant& out) {
    const bool negative = sign("-");
    const Word& literal = word();
    if (literal.kind == WordKind::text && !negative) return out = literal.value, at_++, true;
    const std::string text = (negative ? "-" : "") + literal.value;
    if (literal.kind == WordKind::whole) {
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || value == INT64_MIN) return false;
      out = value;
    } else if (literal.kind == WordKind::real) {
      double value = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size()) return false;
      out = value;
    } else {
      return false;
    }
    at_++;
    return true;
  }

  bool where() {
    if (!keyword("where")) return true;
    do {
      if (!condition()) return false;
    } while (keyword("and"));
    return true;
  }

  bool condition() {
    const auto left = column();
    if (!left) return false;
    Predicate predicate{*left, Compare::equal, {}};
    if (keyword("is")) {
      predicate.compare = keyword("not") ? Compare::not_null : Compare::is_null;
      return keyword("null") && add(std::move(predicate));
    }
    if (keyword("between")) return between(*left);
    const bool no = keyword("not");
    if (keyword("in")) {
      predicate.compare = no ? Compare::not_equal : Compare::equal;
      return list(predicate) && add(std::move(predicate));
    }
    if (no) return false;
    if (!comparison(predicate.compare)) return false;
    return constant(predicate.constants.emplace_back()) && !is_keyword("escape") && add(std::move(predicate));
  }

  bool comparison(Compare& compare) {
    static constexpr std::pair<std::string_view, Compare> signs[] = {
        {"=", Compare::equal},    {"==", Compare::equal}, {"!=", Compare::not_equal}, {"<>", Compare::not_equal},
        {"<=", Compare::at_most}, {"<", Compare::less},   {">=", Compare::at_least},  {">", Compare::more}};
    for (const auto& [text, meaning] : signs) {
      if (sign(text)) return compare = meaning, true;
    }
    if (keyword("like")) return compare = Compare::like, true;
    if (keyword("glob")) return compare = Compare::glob, true;
    return false;
  }

  bool between(std::size_t left) {
    Predicate low{left, Compare::at_least, {}}, high{left, Compare::at_most, {}};
    return constant(low.constants.emplace_back()) && keyword("and") && constant(high.constants.emplace_back()) &&
           add(std::move(low)) && add(std::move(high));
  }

  bool list(Predicate& predicate) {
    if (!sign("(")) return false;
    do {
      if (!constant(predicate.constants.emplace_back())) return false;
    } while (sign(","));
    return sign(")");
  }

  bool add(Predicate predicate) {
    if (!supported(type(predicate.column), predicate)) return false;
    select_.where.push_back(std::move(predicate));
    return true;
  }

  // By a column, or by the place of a column among the items.
  bool group() {
    if (!keyword("group")) return true;
    if (!keyword("by")) return false;
    do {
      std::optional<std::size_t> found;
      if (const auto place = item_place()) {
        if (select_.items[*place].aggregate != Aggregate::none) return false;
        found = select_.items[*place].column;
      } else {
        found = column();
      }
      if (!found || type(*found) == ValueType::real) return false;
      select_.group.push_back(*found);
    } while (sign(","));
    return !is_keyword("having");
  }

  std::optional<std::size_t> item_place() {
    if (word().kind != WordKind::whole || word().value.size() > 3) return std::nullopt;
    const std::size_t place = std::stoul(word().value);
    if (place == 0 || place > select_.items.size()) return std::nullopt;
    at_++;
    return place - 1;
  }

  bool order() {
    if (!keyword("order")) return true;
    if (!keyword("by")) return false;
    do {
      OrderTerm term;
      if (!order_item(term.item)) return false;
      term.descending = keyword("desc");
      if (!term.descending) keyword("asc");
      if (is_keyword("nulls") || is_keyword("collate")) return false;
      select_.order.push_back(term);
    } while (sign(","));
    return true;
  }

  bool order_item(std::size_t& out) {
    if (word().kind == WordKind::whole) {
      const auto place = item_place();
      if (place) out = *place;
      return place.has_value();
    }
    const auto& items = select_.items;
    for (std::size_t i = 0; i < items.size() && is_name(); i++) {
      if (items[i].alias.empty() || !same_name(items[i].alias, word().value)) continue;
      if (word(1).value == "(") break;
      return out = i, at_++, true;
    }
    SelectItem wanted;
    if (!expression(wanted)) return false;
    for (std::size_t i = 0; i < items.size(); i++) {
      const bool same = items[i].aggregate == wanted.aggregate &&
                        (wanted.aggregate == Aggregate::count_rows || items[i].column == wanted.column);
      if (same) return out = i, true;
    }
    return false;
  }

  bool count(std::int64_t& out) {
    Constant value;
    if (!constant(value) || !std::holds_alternative<std::int64_t>(value)) return false;
    out = std::get<std::int64_t>(value);
    return out >= 0;
  }

  bool limit() {
    if (!keyword("limit")) return true;
    std::int64_t rows = 0;
    if (!count(rows)) return false;
    select_.limit = rows;
    return !keyword("offset") || count(select_.offset);
  }

  // SQLite would show the value of some row of the group.
  bool plain_columns_are_grouped() const {
    bool aggregated = !select_.group.empty();
    for (const SelectItem& item : select_.items) {
      if (item.aggregate != Aggregate::none) {
        aggregated = true;
      } else if (std::find(select_.group.begin(), select_.group.end(), item.column) == select_.group.end()) {
        return false;
      }
    }
    return aggregated;
  }

  std::vector<Word> words_;
  std::size_t at_ = 0;
  SimpleSelect select_;
};

}  // namespace

std::optional<SimpleSelect> parse_simple_select(std::string_view sql) {
  auto words = split_words(sql);
  if (!words) return std::nullopt;
  return Parser(*std::move(words)).parse();
}

}  // namespace stepscope::query
