#include "read/rocprof_json/fields.h"

#include <charconv>
#include <cmath>

namespace stepscope::read::rocprof {
namespace {

std::int64_t from_text(std::string_view text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number, hex ? 16 : 10);
  const bool whole = error == std::errc() && stop == text.data() + text.size();
  return whole ? static_cast<std::int64_t>(number) : kAbsent;
}

std::int64_t scalar(const Field& field) {
  if (std::int64_t number = 0; field.get(number) == simdjson::SUCCESS) return number;
  if (std::uint64_t number = 0; field.get(number) == simdjson::SUCCESS) return static_cast<std::int64_t>(number);
  if (double number = 0; field.get(number) == simdjson::SUCCESS) {
    return std::abs(number) < 9.2e18 ? static_cast<std::int64_t>(number) : kAbsent;
  }
  if (std::string_view text; field.get(text) == simdjson::SUCCESS) return from_text(text);
  return kAbsent;
}

}  // namespace

std::int64_t integer(const Field& field) { return scalar(field.is_object() ? field["handle"] : field); }

std::string_view words(const Field& field) {
  std::string_view text;
  return field.get(text) == simdjson::SUCCESS ? text : std::string_view();
}

}  // namespace stepscope::read::rocprof
