#include "read/chrome_trace/borders.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace stepscope::read::chrome_trace {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

constexpr std::string_view kFirstKeys[] = {"ph\"",  "name\"", "cat\"",  "ts\"", "pid\"",
                                           "tid\"", "id\"",   "args\"", "dur\""};

bool is_border(const char* text, std::size_t brace, std::size_t floor, std::size_t size) {
  std::size_t key = brace + 1;
  const std::size_t reach = std::min(size, brace + kBorderReach);
  while (key < reach && is_space(text[key])) key++;
  if (key + 6 > size || text[key] != '"') return false;
  const std::string_view rest(text + key + 1, size - key - 1);
  const bool event =
      std::any_of(std::begin(kFirstKeys), std::end(kFirstKeys), [&](auto k) { return rest.starts_with(k); });
  if (!event || brace < floor + 2) return false;
  const std::size_t lowest = std::max(floor, brace > kBorderReach ? brace - kBorderReach : 0);
  std::size_t before = brace - 1;
  while (before > lowest && is_space(text[before])) before--;
  if (text[before] != ',' || before == lowest) return false;
  before--;
  while (before > lowest && is_space(text[before])) before--;
  return text[before] == '}';
}

}  // namespace

std::size_t next_border(const char* text, std::size_t from, std::size_t floor, std::size_t size) {
  while (from < size) {
    const void* found = std::memchr(text + from, '{', size - from);
    if (found == nullptr) break;
    const auto brace = static_cast<std::size_t>(static_cast<const char*>(found) - text);
    if (is_border(text, brace, floor, size)) return brace;
    from = brace + 1;
  }
  return kNoBorder;
}

std::size_t last_border(const char* text, std::size_t size) {
  std::size_t end = size;
  while (end > 0) {
    const void* found = memrchr(text, '{', end);
    if (found == nullptr) break;
    end = static_cast<std::size_t>(static_cast<const char*>(found) - text);
    if (is_border(text, end, 0, size)) return end;
  }
  return kNoBorder;
}

}  // namespace stepscope::read::chrome_trace
