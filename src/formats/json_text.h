// Raw JSON text → clean UTF-8, and a small tolerant scanner for values that are looked at rarely (metadata, counters).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepscope::formats {

// The text between the quotes of a JSON string as UTF-8. Whatever is wrong is made visible and kept distinct: raw
// control bytes and invalid UTF-8 become \xNN, an unknown escape keeps its backslash, lone surrogates become U+FFFD.
// `repaired` is set when anything was wrong (raw tabs and line ends are wrong in JSON, but kept).
std::string unescape(std::string_view raw, bool& repaired);

// True when `text` has neither escapes nor anything that unescape() would change.
bool is_clean(std::string_view text);

// Any bytes as UTF-8 on which every door agrees: control bytes and invalid UTF-8 become \xNN; tabs and line ends stay.
// `repaired` is set when anything was wrong.
std::string visible(std::string_view bytes, bool& repaired);

// One member of an object, values as raw text (quotes and brackets included).
struct RawMember {
  std::string key;  // unescaped
  std::string_view raw_key;
  std::string_view value;
};

// The members of the object that starts at text[0] == '{', as far as it is well formed; `end` is set behind what was
// understood. Nested values are skipped with a counter, not by recursion.
std::vector<RawMember> members(std::string_view text, std::size_t* end = nullptr);

// The position behind the JSON value that starts at `begin` (string, object, array or scalar), npos when it is not
// closed within `text`.
std::size_t skip_value(std::string_view text, std::size_t begin);
std::size_t skip_space(std::string_view text, std::size_t begin);

// A raw value as text: strings unescaped, everything else as written.
std::string value_text(std::string_view raw);
// A raw value as integer, also from a string or a real without fraction; `otherwise` when it is none.
long long value_int(std::string_view raw, long long otherwise);

}  // namespace stepscope::formats
