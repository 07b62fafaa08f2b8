#include "query/grouped_select.h"

#include <algorithm>
#include <array>

#include "query/where_parser.h"

namespace stepscope::query {
namespace {

struct AggregateName {
  std::string_view name;
  Aggregate aggregate;
};
constexpr AggregateName kAggregates[] = {{"count", Aggregate::count}, {"sum", Aggregate::sum},
                                         {"total", Aggregate::total}, {"avg", Aggregate::avg},
                                         {"min", Aggregate::min},     {"max", Aggregate::max}};

// Functions of one row. Others may aggregate, which the table of groups would get wrong.
constexpr std::array<std::string_view, 20> kScalarFunctions{
    "abs",    "cast",   "coalesce", "format", "ifnull", "iif",    "instr", "length", "lower", "ltrim",
    "nullif", "printf", "replace",  "round",  "rtrim",  "substr", "trim",  "typeof", "upper", "substring"};
// Words of expressions that mean the same in the rest of the statement.
constexpr std::array<std::string_view, 16> kExpressionWords{"and",  "or",   "not",  "in",   "is",  "null",
                                                            "case", "when", "then", "else", "end", "between",
                                                            "like", "glob", "asc",  "desc"};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view one) { return same_name(one, word); });
}

std::string quoted(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// A stretch of words: [begin, end).
struct Range {
  std::size_t begin = 0, end = 0;
};

struct Item {
  Range words;                        // without the alias
  std::string alias;                  // empty: none
  std::optional<std::size_t> column;  // where it is nothing but a column
};

// Each method takes what it is named after, or says false: then the statement is SQLite's.
class Parser {
 public:
  explicit Parser(std::vector<Word> words) : words_(std::move(words)) {}

  std::optional<GroupedSelect> parse() {
    if (!words_.keyword("select")) return std::nullopt;
    const bool distinct = words_.keyword("distinct");
    const Range all = until({"from"});
    if (!words_.keyword("from") || !words_.is_name()) return std::nullopt;
    select_.table = model_table(words_.word().value);
    if (select_.table == nullptr) return std::nullopt;
    words_.go_to(words_.at() + 1);
    if (!split_items(all) || !take_where(words_, *select_.table, select_.where)) return std::nullopt;
    if (!group() || (distinct && !distinct_columns())) return std::nullopt;
    const bool grouped = !select_.group.empty() && !distinct;
    if (words_.is_keyword("having") && !grouped) return std::nullopt;
    const Range having = words_.keyword("having") ? until({"order", "limit"}) : Range{};
    const bool ordered = words_.keyword("order");
    if (ordered && !words_.keyword("by")) return std::nullopt;
    const Range order = ordered ? until({"limit"}) : Range{};
    const Range limit = words_.is_keyword("limit") ? until({}) : Range{};
    words_.sign(";");
    if (!words_.at_end() || !write_outer(having, order, limit)) return std::nullopt;
    if (select_.group.empty() && select_.calls.empty()) return std::nullopt;
    return std::move(select_);
  }

 private:
  // Up to one of the words, outside of parentheses.
  Range until(std::initializer_list<std::string_view> ends) {
    Range range{words_.at(), words_.at()};
    for (int depth = 0; !words_.at_end() && !(depth == 0 && words_.is_sign(";")); words_.go_to(words_.at() + 1)) {
      depth += words_.is_sign("(") ? 1 : words_.is_sign(")") ? -1 : 0;
      if (depth == 0 && std::any_of(ends.begin(), ends.end(), [&](auto end) { return words_.is_keyword(end); })) break;
    }
    range.end = words_.at();
    return range;
  }

  bool split_items(Range all) {
    int depth = 0;
    Range item{all.begin, all.begin};
    for (std::size_t at = all.begin; at < all.end; at++) {
      const Word& word = words_[at];
      const bool sign = word.kind == WordKind::sign;
      depth += sign && word.value == "(" ? 1 : sign && word.value == ")" ? -1 : 0;
      if (depth != 0 || !sign || word.value != ",") continue;
      item.end = at;
      if (!add_item(item)) return false;
      item.begin = at + 1;
    }
    item.end = all.end;
    return add_item(item);
  }

  // Behind an item stands its alias, with or without AS. One that is also a column could mean either later on.
  bool add_item(Range range) {
    if (range.begin == range.end) return false;
    Item item{range, {}, {}};
    const Word& last = words_[range.end - 1];
    const bool is_name = last.kind == WordKind::quoted_name ||
                         (last.kind == WordKind::name && !is_reserved(last.value) && !same_name(last.value, "end"));
    if (is_name && range.end - range.begin > 1) {
      const Word& before = words_[range.end - 2];
      const bool as = before.kind == WordKind::name && same_name(before.value, "as");
      const bool operand = before.kind != WordKind::sign || before.value == ")";
      if (!operand) return add_plain(std::move(item));
      item.words.end -= as ? 2 : 1;
      item.alias = last.value;
      if (column_named(*select_.table, item.alias) || item.words.begin >= item.words.end) return false;
    }
    return add_plain(std::move(item));
  }

  bool add_plain(Item item) {
    const Word& first = words_[item.words.begin];
    if (item.words.end - item.words.begin == 1 &&
        (first.kind == WordKind::name || first.kind == WordKind::quoted_name)) {
      item.column = column_named(*select_.table, first.value);
    }
    items_.push_back(std::move(item));
    return true;
  }

  // By a column, by an alias of one, or by the place of one among the items.
  bool group() {
    if (!words_.keyword("group")) return true;
    if (!words_.keyword("by")) return false;
    do {
      std::optional<std::size_t> found = take_column(words_, *select_.table);
      if (!found) found = column_of_item();
      if (!found || !add_group(*found)) return false;
    } while (words_.sign(","));
    return true;
  }

  std::optional<std::size_t> column_of_item() {
    const Word& word = words_.word();
    for (std::size_t i = 0; i < items_.size(); i++) {
      const bool by_place = word.kind == WordKind::whole && word.value == std::to_string(i + 1);
      const bool by_alias = words_.is_name() && !items_[i].alias.empty() && same_name(items_[i].alias, word.value);
      if (!by_place && !by_alias) continue;
      if (items_[i].column) words_.go_to(words_.at() + 1);
      return items_[i].column;
    }
    return std::nullopt;
  }

  bool add_group(std::size_t column) {
    if (tables::value_type(select_.table->spec->columns[column]) == ValueType::real) return false;
    select_.group.push_back(column);
    return true;
  }

  // select distinct a, b: the groups of a and b.
  bool distinct_columns() {
    if (!select_.group.empty()) return false;
    return std::all_of(items_.begin(), items_.end(),
                       [&](const Item& item) { return item.column && add_group(*item.column); });
  }

  bool write_outer(Range having, Range order, Range limit) {
    std::string& out = select_.outer;
    out = "select ";
    for (const Item& item : items_) {
      if (&item != items_.data()) out += ", ";
      if (!rewrite(item.words, false, out)) return false;
      out += " as " + quoted(head_of(item));
    }
    out += " from " + quoted(kGroupedTable);
    if (having.end > having.begin) {
      out += " where ";
      if (!rewrite(having, true, out)) return false;
    }
    if (order.end > order.begin) {
      out += " order by ";
      if (!rewrite(order, true, out)) return false;
    }
    if (limit.end > limit.begin) out += " " + std::string(raw(limit));
    return true;
  }

  std::string_view raw(Range range) const {
    const char* begin = words_[range.begin].raw.data();
    const std::string_view last = words_[range.end - 1].raw;
    return {begin, static_cast<std::size_t>(last.data() + last.size() - begin)};
  }

  // As SQLite heads the column of the statement as it was written.
  std::string head_of(const Item& item) const {
    if (!item.alias.empty()) return item.alias;
    return item.column ? std::string(select_.table->spec->columns[*item.column].name) : std::string(raw(item.words));
  }

  // Copies an expression with columns of the table of groups for what was computed here.
  bool rewrite(Range range, bool aliases, std::string& out) {
    words_.go_to(range.begin);
    bool operand = false;  // a value stands before: a star multiplies
    while (words_.at() < range.end) {
      const Word& word = words_.word();
      if (word.kind == WordKind::end) return false;
      if (word.kind == WordKind::name || word.kind == WordKind::quoted_name) {
        if (!rewrite_name(aliases, out)) return false;
        operand = true;
        continue;
      }
      if (word.kind == WordKind::sign && word.value == "*" && !operand) return false;
      operand = word.kind != WordKind::sign || word.value == ")";
      out += word.raw;
      out += ' ';
      words_.go_to(words_.at() + 1);
    }
    return words_.at() == range.end;
  }

  bool rewrite_name(bool aliases, std::string& out) {
    const Word word = words_.word();
    if (words_.is_sign("(", 1) && word.kind == WordKind::name) {
      if (const auto call = take_call()) {
        out += quoted(call_column(*call)) + ' ';
        return true;
      }
      if (!is_one_of(word.value, kScalarFunctions) && !is_one_of(word.value, kExpressionWords)) return false;
    } else if (words_.is_keyword("as")) {  // of a cast: those of aliases are gone
      out += "as ";
      words_.go_to(words_.at() + 1);
    } else if (const auto column = word.kind == WordKind::quoted_name || !is_reserved(word.value)
                                       ? column_named(*select_.table, word.value)
                                       : std::nullopt) {
      const auto found = std::find(select_.group.begin(), select_.group.end(), *column);
      if (found == select_.group.end()) return false;  // SQLite would show the value of some row of the group
      out += quoted(group_column(static_cast<std::size_t>(found - select_.group.begin()))) + ' ';
      words_.go_to(words_.at() + 1);
      return true;
    } else if (!(word.kind == WordKind::name && is_one_of(word.value, kExpressionWords)) &&
               !(aliases && is_alias(word.value))) {
      return false;
    }
    out += words_.word().raw;
    out += ' ';
    words_.go_to(words_.at() + 1);
    return true;
  }

  bool is_alias(std::string_view name) const {
    return std::any_of(items_.begin(), items_.end(),
                       [&](const Item& item) { return !item.alias.empty() && same_name(item.alias, name); });
  }

  // AGGREGATE(COLUMN); its number among the calls. Takes nothing where it is none.
  std::optional<std::size_t> take_call() {
    const std::size_t start = words_.at();
    AggregateCall call;
    if (!call_at(call)) return words_.go_to(start), std::nullopt;
    const auto found = std::find(select_.calls.begin(), select_.calls.end(), call);
    const auto number = static_cast<std::size_t>(found - select_.calls.begin());
    if (found == select_.calls.end()) select_.calls.push_back(call);
    return number;
  }

  bool call_at(AggregateCall& call) {
    const auto known = std::find_if(std::begin(kAggregates), std::end(kAggregates),
                                    [&](const AggregateName& one) { return words_.is_keyword(one.name); });
    if (known == std::end(kAggregates)) return false;
    call.aggregate = known->aggregate;
    words_.go_to(words_.at() + 2);
    if (call.aggregate == Aggregate::count && words_.sign("*")) {
      call.aggregate = Aggregate::count_rows;
      return words_.sign(")");
    }
    if (call.aggregate == Aggregate::count && words_.keyword("distinct")) call.aggregate = Aggregate::count_distinct;
    const auto column = take_column(words_, *select_.table);
    if (!column || !words_.sign(")") || words_.is_keyword("filter") || words_.is_keyword("over")) return false;
    call.column = *column;
    return allowed(call);
  }

  // Texts have no sum here: SQLite would read numbers in them.
  bool allowed(const AggregateCall& call) const {
    const ValueType type = tables::value_type(select_.table->spec->columns[call.column]);
    switch (call.aggregate) {
      case Aggregate::sum:
      case Aggregate::total:
      case Aggregate::avg: return type != ValueType::text;
      case Aggregate::count_distinct: return type != ValueType::real;
      default: return true;
    }
  }

  WordReader words_;
  std::vector<Item> items_;
  GroupedSelect select_;
};

}  // namespace

std::string group_column(std::size_t i) { return "group " + std::to_string(i); }
std::string call_column(std::size_t i) { return "call " + std::to_string(i); }

std::optional<GroupedSelect> parse_grouped_select(std::string_view sql) {
  auto words = split_words(sql);
  if (!words) return std::nullopt;
  return Parser(*std::move(words)).parse();
}

}  // namespace stepscope::query
