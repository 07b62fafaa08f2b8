#include "query/top_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "query/where_parser.h"

namespace stepscope::query {
namespace {

constexpr std::uint64_t kMostRows = 100'000;  // beyond that sorting all is not much worse

struct TopSelect {
  const ModelTable* table = nullptr;
  std::vector<Predicate> where;
  bool has_where = false;
  std::size_t place = 0;  // in the statement, behind the conditions
  std::size_t column = 0;
  bool descending = false;
  std::size_t rows = 0;  // limit and offset together
};

class Parser {
 public:
  explicit Parser(std::vector<Word> words, std::string_view sql) : words_(std::move(words)), sql_(sql) {}

  std::optional<TopSelect> parse() {
    if (!words_.keyword("select") || words_.is_keyword("distinct") || !items()) return std::nullopt;
    if (!words_.is_name()) return std::nullopt;
    top_.table = model_table(words_.word().value);
    if (top_.table == nullptr) return std::nullopt;
    words_.go_to(words_.at() + 1);
    top_.has_where = words_.is_keyword("where");
    if (!take_where(words_, *top_.table, top_.where)) return std::nullopt;
    const std::string_view last = words_[words_.at() - 1].raw;
    top_.place = static_cast<std::size_t>(last.data() + last.size() - sql_.data());
    if (!words_.keyword("order") || !words_.keyword("by") || !order() || !limit()) return std::nullopt;
    words_.sign(";");
    if (!words_.at_end()) return std::nullopt;
    return std::move(top_);
  }

 private:
  // Columns and their arithmetic. A call could be of an aggregate, a select one of its own.
  bool items() {
    for (; !words_.keyword("from"); words_.go_to(words_.at() + 1)) {
      if (words_.at_end() || words_.is_keyword("select") || words_.is_sign("(")) return false;
    }
    return true;
  }

  // The first term decides; an alias that is a column's name would be another column.
  bool order() {
    const auto column = take_column(words_, *top_.table);
    if (!column || aliased(*column)) return false;
    top_.column = *column;
    const ValueType type = tables::value_type(top_.table->spec->columns[*column]);
    if (type != ValueType::integer && type != ValueType::real) return false;
    top_.descending = words_.keyword("desc");
    if (!top_.descending) words_.keyword("asc");
    if (!words_.is_sign(",") && !words_.is_keyword("limit")) return false;
    while (!words_.is_keyword("limit")) {
      if (words_.at_end() || words_.is_keyword("select")) return false;
      words_.go_to(words_.at() + 1);
    }
    return true;
  }

  bool aliased(std::size_t column) const {
    const std::string_view name = top_.table->spec->columns[column].name;
    for (std::size_t at = 1; !(words_[at].kind == WordKind::name && same_name(words_[at].value, "from")); at++) {
      const bool behind_operand = words_[at - 1].kind != WordKind::sign && !same_name(words_[at - 1].value, "select");
      if (behind_operand && words_[at].kind != WordKind::sign && same_name(words_[at].value, name)) return true;
    }
    return false;
  }

  bool limit() {
    std::uint64_t rows = 0, offset = 0;
    if (!words_.keyword("limit") || !count(rows)) return false;
    if (words_.keyword("offset") && !count(offset)) return false;
    if (rows == 0 || rows > kMostRows || offset > kMostRows) return false;
    top_.rows = rows + offset;
    return true;
  }

  bool count(std::uint64_t& out) {
    const Word& word = words_.word();
    if (word.kind != WordKind::whole) return false;
    const auto [end, error] = std::from_chars(word.value.data(), word.value.data() + word.value.size(), out);
    words_.go_to(words_.at() + 1);
    return error == std::errc();
  }

  WordReader words_;
  std::string_view sql_;
  TopSelect top_;
};

// Keeps the first `most` of all values that were added.
template <class T>
class Best {
 public:
  Best(std::size_t most, bool descending) : most_(most), descending_(descending) {}

  void add(T value) {
    values_.push_back(value);
    if (values_.size() >= 2 * most_ + 4096) prune();
  }
  // The last of the first; nullopt: there are fewer.
  std::optional<T> last() {
    if (values_.size() < most_) return std::nullopt;
    prune();
    return values_.back();
  }

 private:
  void prune() {
    const auto last = values_.begin() + static_cast<std::ptrdiff_t>(most_) - 1;
    if (descending_) {
      std::nth_element(values_.begin(), last, values_.end(), std::greater<T>());
    } else {
      std::nth_element(values_.begin(), last, values_.end());
    }
    values_.resize(most_);
  }

  std::size_t most_;
  bool descending_;
  std::vector<T> values_;
};

bool is_null(std::int64_t value) { return value == kAbsent; }
bool is_null(double value) { return std::isnan(value); }
void take(const tables::ColumnReader& reader, std::size_t first, std::vector<std::int64_t>& out) {
  reader.integers(first, out);
}
void take(const tables::ColumnReader& reader, std::size_t first, std::vector<double>& out) { reader.reals(first, out); }

// The value of the last row that can be among those asked for; nullopt where nulls are among them.
template <class T>
Result<std::optional<T>> last_value(const TopSelect& top, const Run& run, const Deadline& deadline,
                                    const Limits& limits) {
  std::vector<Predicate> where = top.where;
  where.insert(where.begin(), top.table->only.begin(), top.table->only.end());
  TableReaders readers(*top.table->spec, run);
  Scan scan(readers, std::move(where));
  Best<T> best(top.rows, top.descending);
  std::vector<T> block;
  while (scan.next()) {
    if (deadline.passed()) return fail(out_of_time(limits));
    block.resize(scan.size());
    take(readers.column(scan.trace(), top.column), scan.first(), block);
    for (const std::uint32_t row : scan.rows()) {
      const T value = block[row - scan.first()];
      if (!is_null(value)) {
        best.add(value);
      } else if (!top.descending) {
        return std::optional<T>();  // null comes first
      }
    }
  }
  return best.last();
}

std::string with_condition(std::string_view sql, const TopSelect& top, const std::string& value) {
  return fmt::format("{} {} \"{}\" {} {}{}", sql.substr(0, top.place), top.has_where ? "and" : "where",
                     top.table->spec->columns[top.column].name, top.descending ? ">=" : "<=", value,
                     sql.substr(top.place));
}

}  // namespace

Result<std::optional<std::string>> narrow_to_top(const Run& run, std::string_view sql, const Deadline& deadline,
                                                 const Limits& limits) {
  std::optional<std::string> narrowed;
  auto words = split_words(sql);
  if (!words) return narrowed;
  const auto top = Parser(*std::move(words), sql).parse();
  if (!top) return narrowed;
  if (tables::value_type(top->table->spec->columns[top->column]) == ValueType::integer) {
    const auto last = last_value<std::int64_t>(*top, run, deadline, limits);
    if (!last) return fail(last.error());
    if (*last) narrowed = with_condition(sql, *top, std::to_string(**last));
  } else {
    const auto last = last_value<double>(*top, run, deadline, limits);
    if (!last) return fail(last.error());
    if (*last && std::isfinite(**last)) narrowed = with_condition(sql, *top, fmt::format("{:.17g}", **last));
  }
  return narrowed;
}

}  // namespace stepscope::query
