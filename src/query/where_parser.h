// WordReader: takes the words of a statement one by one; WhereParser: takes the conditions that can be held against
// blocks of columns. Each method takes what it is named after, or says false: then the statement is SQLite's.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "query/catalog.h"
#include "query/sql_words.h"

namespace stepscope::query {

class WordReader {
 public:
  explicit WordReader(std::vector<Word> words) : words_(std::move(words)) {}

  std::size_t at() const { return at_; }
  void go_to(std::size_t at) { at_ = at; }
  const Word& word(std::size_t ahead = 0) const { return words_[std::min(at_ + ahead, words_.size() - 1)]; }
  const Word& operator[](std::size_t at) const { return words_[at]; }
  bool at_end() const { return word().kind == WordKind::end; }

  bool is_keyword(std::string_view text, std::size_t ahead = 0) const;
  bool is_sign(std::string_view text, std::size_t ahead = 0) const;
  bool is_name() const;  // that is no reserved word
  bool keyword(std::string_view text) { return is_keyword(text) && ++at_; }
  bool sign(std::string_view text) { return is_sign(text) && ++at_; }

 private:
  std::vector<Word> words_;
  std::size_t at_ = 0;
};

// The column of that name; nullopt: the table has none.
std::optional<std::size_t> column_named(const ModelTable& table, std::string_view name);
// Takes the name of a column.
std::optional<std::size_t> take_column(WordReader& words, const ModelTable& table);

// [where CONDITION [and CONDITION]…]; appends to `out`.
bool take_where(WordReader& words, const ModelTable& table, std::vector<Predicate>& out);

}  // namespace stepscope::query
