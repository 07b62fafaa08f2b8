#include "query/sql_words.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "query/catalog.h"

namespace stepscope::query {
namespace {

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool in_name(char c) { return starts_name(c) || is_digit(c); }

class Splitter {
 public:
  explicit Splitter(std::string_view sql) : sql_(sql) {}

  std::optional<std::vector<Word>> all() {
    std::vector<Word> words;
    for (;;) {
      skip_space();
      const std::size_t begin = at_;
      if (at_ == sql_.size()) return words.push_back({WordKind::end, sql_.substr(at_), ""}), words;
      Word word;
      if (!take(word)) return std::nullopt;
      word.raw = sql_.substr(begin, at_ - begin);
      words.push_back(std::move(word));
    }
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < sql_.size() ? sql_[at_ + ahead] : '\0'; }

  void skip_space() {
    while (at_ < sql_.size() && std::isspace(static_cast<unsigned char>(sql_[at_])) != 0) at_++;
  }

  bool take(Word& word) {
    const char c = peek();
    if (starts_name(c)) return take_name(word);
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return take_number(word);
    if (c == '\'') return word.kind = WordKind::text, take_quoted(word, '\'');
    if (c == '"') return word.kind = WordKind::quoted_name, take_quoted(word, '"');
    return take_sign(word);
  }

  bool take_name(Word& word) {
    word.kind = WordKind::name;
    while (in_name(peek())) word.value += sql_[at_++];
    return peek() != '\'';  // x'…' is a blob
  }

  bool take_number(Word& word) {
    const std::size_t begin = at_;
    word.kind = WordKind::whole;
    while (is_digit(peek())) at_++;
    if (peek() == '.') {
      word.kind = WordKind::real;
      for (at_++; is_digit(peek());) at_++;
    }
    if (peek() == 'e' || peek() == 'E') {
      word.kind = WordKind::real;
      at_ += peek(1) == '+' || peek(1) == '-' ? 2 : 1;
      if (!is_digit(peek())) return false;
      while (is_digit(peek())) at_++;
    }
    word.value = sql_.substr(begin, at_ - begin);
    return !in_name(peek());
  }

  bool take_quoted(Word& word, char quote) {
    for (at_++; at_ < sql_.size(); at_++) {
      if (sql_[at_] == quote) {
        if (peek(1) != quote) return at_++, true;
        at_++;
      }
      word.value += sql_[at_];
    }
    return false;
  }

  // Comments, parameters and operators on bits are not for us.
  bool take_sign(Word& word) {
    static constexpr std::array<std::string_view, 18> signs{"<=", ">=", "<>", "!=", "==", "||", "=", "<", ">",
                                                            "(",  ")",  ",",  "*",  ";",  "-",  "+", "/", "%"};
    if (sql_.substr(at_).starts_with("--") || sql_.substr(at_).starts_with("/*")) return false;
    for (const std::string_view sign : signs) {
      if (!sql_.substr(at_).starts_with(sign)) continue;
      word.kind = WordKind::sign;
      word.value = sign;
      at_ += sign.size();
      return true;
    }
    return false;
  }

  std::string_view sql_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::vector<Word>> split_words(std::string_view sql) { return Splitter(sql).all(); }

bool is_reserved(std::string_view word) {
  static constexpr std::array<std::string_view, 38> words{
      "select", "from",  "where",  "group", "by",   "order",   "limit",   "offset",    "and",    "or",
      "not",    "as",    "in",     "is",    "null", "between", "like",    "glob",      "having", "distinct",
      "all",    "union", "except", "case",  "when", "then",    "else",    "intersect", "join",   "on",
      "using",  "asc",   "desc",   "nulls", "over", "filter",  "collate", "escape"};
  return std::any_of(words.begin(), words.end(), [&](std::string_view one) { return same_name(one, word); });
}

}  // namespace stepscope::query
