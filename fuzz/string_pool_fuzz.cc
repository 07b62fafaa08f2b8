// The string pool against std::map: any sequence of strings gives the same ids, texts and sizes, also after truncate().
// Input: strings separated by line feeds.
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/string_pool.h"

using stepscope::StringId;
using stepscope::StringPool;

namespace {

void must(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1)) {
    parts.push_back(text.substr(0, end));
  }
  parts.push_back(text);
  return parts;
}

void intern_all(StringPool& pool, std::map<std::string, StringId, std::less<>>& expected,
                const std::vector<std::string_view>& strings) {
  for (const auto text : strings) {
    const auto known = expected.find(text);
    must(pool.find(text) == (known == expected.end() ? StringId::none : known->second));
    const StringId id = pool.intern(text);
    must(expected.emplace(text, id).first->second == id);
    must(pool[id] == text);
    must(pool.size() == expected.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const auto strings = split({reinterpret_cast<const char*>(data), size});
  StringPool pool;
  std::map<std::string, StringId, std::less<>> expected;
  for (std::size_t id = 0; id < pool.size(); ++id) {
    expected.emplace(pool[static_cast<StringId>(id)], static_cast<StringId>(id));
  }
  const std::size_t at_first = pool.size();
  intern_all(pool, expected, strings);
  const std::size_t keep = at_first + (pool.size() - at_first) / 2;
  pool.truncate(keep);
  std::erase_if(expected, [&](const auto& item) { return static_cast<std::size_t>(item.second) >= keep; });
  must(pool.size() == keep);
  intern_all(pool, expected, strings);
  return 0;
}
