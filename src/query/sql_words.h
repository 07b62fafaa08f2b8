// The words of a statement, as far as the shapes that we recognize need them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepscope::query {

enum class WordKind : std::uint8_t { name, quoted_name, text, whole, real, sign, end };

struct Word {
  WordKind kind = WordKind::end;
  std::string_view raw;  // as written; points into the statement
  std::string value;     // names and texts without quotes
};

// nullopt: there is something in the statement that only SQLite should judge.
std::optional<std::vector<Word>> split_words(std::string_view sql);

// Words that end a name or start something that is none.
bool is_reserved(std::string_view word);

}  // namespace stepscope::query
